// Ticks and microtasks alone do not bring the loop back to life.
process.on('beforeExit', () => {
  console.log('before exit');
  queueMicrotask(() => console.log('microtask'));
  process.nextTick(() => console.log('tick'));
});
process.on('exit', () => console.log('exit'));
