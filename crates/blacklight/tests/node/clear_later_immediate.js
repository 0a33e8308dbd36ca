// An immediate may clear a later one of the same turn.
setImmediate(() => {
  console.log('a');
  clearImmediate(b);
});
const b = setImmediate(() => console.log('b'));
setImmediate(() => console.log('c'));
