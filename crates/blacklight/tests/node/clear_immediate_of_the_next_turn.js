// An immediate may be cleared by one that runs a turn before it.
setImmediate(() => {
  console.log('a');
  const c = setImmediate(() => console.log('c'));
  setImmediate(() => console.log('d'));
  process.nextTick(() => clearImmediate(c));
});
const self = setImmediate(() => {
  console.log('b');
  clearImmediate(self);
});
