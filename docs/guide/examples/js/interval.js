// An interval is a timer that is set again after each of its callbacks, and keeps the loop alive until it
// is cleared. One that is unreferenced does not keep it.
let ticks = 0;

const interval = setInterval(() => {
  ticks += 1;
  console.log(`tick ${ticks}`);
  if (ticks === 3) clearInterval(interval);
}, 5);

setInterval(() => console.log('never'), 1_000_000).unref();
