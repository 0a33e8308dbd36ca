// The other microtasks run.
process.on('uncaughtException', (error) => console.log('caught', error.message));
queueMicrotask(() => console.log('a'));
queueMicrotask(() => {
  throw new Error('b');
});
queueMicrotask(() => console.log('c'));
