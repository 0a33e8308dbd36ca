// At the exit it is too late for all but microtasks.
process.on('exit', () => {
  console.log('exit 1');
  setTimeout(() => console.log('timeout'), 0);
  setImmediate(() => console.log('immediate'));
  process.nextTick(() => console.log('tick'));
  queueMicrotask(() => console.log('microtask'));
});
process.on('exit', () => console.log('exit 2'));
