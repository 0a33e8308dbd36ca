// Cleared by a tick of its own, an interval that is armed again already does not run again.
const interval = setInterval(() => {
  console.log('interval');
  process.nextTick(() => clearInterval(interval));
}, 10);
