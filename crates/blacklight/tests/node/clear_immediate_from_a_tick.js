// So may a tick between the two.
setImmediate(() => {
  console.log('a');
  process.nextTick(() => clearImmediate(b));
});
const b = setImmediate(() => console.log('b'));
setImmediate(() => console.log('c'));
