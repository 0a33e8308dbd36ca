// From a timer: ticks, microtasks, then immediates, and only then another timer.
setTimeout(() => {
  setTimeout(() => console.log('timeout'), 0);
  setImmediate(() => console.log('immediate'));
  queueMicrotask(() => console.log('microtask'));
  process.nextTick(() => console.log('tick'));
  console.log('timer');
}, 5);
