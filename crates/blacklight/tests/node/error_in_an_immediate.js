// The other immediates of the turn run, and those that were added run on the next.
process.on('uncaughtException', (error) => console.log('caught', error.message));
setImmediate(() => {
  console.log('a');
  setImmediate(() => console.log('d'));
});
setImmediate(() => {
  throw new Error('b');
});
setImmediate(() => console.log('c'));
