// The other ticks run, and so do microtasks.
process.on('uncaughtException', (error) => console.log('caught', error.message));
process.nextTick(() => console.log('a'));
process.nextTick(() => {
  throw new Error('b');
});
process.nextTick(() => console.log('c'));
queueMicrotask(() => console.log('microtask'));
