// clearTimeout and clearInterval are the same.
const interval = setInterval(() => {
  console.log('interval');
  clearTimeout(interval);
}, 5);
const timeout = setTimeout(() => console.log('never'), 5);
clearInterval(timeout);
