// From an immediate: ticks and microtasks at once, immediates on the next turn.
setImmediate(() => {
  setImmediate(() => console.log('immediate 3'));
  queueMicrotask(() => console.log('microtask'));
  process.nextTick(() => console.log('tick'));
  console.log('immediate 1');
});
setImmediate(() => console.log('immediate 2'));
