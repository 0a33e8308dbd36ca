// With its last immediate cleared, nothing keeps the loop alive.
const a = setImmediate(() => console.log('a'));
const b = setImmediate(() => console.log('b'));
clearImmediate(a);
clearImmediate(b);
clearImmediate(b);
process.on('beforeExit', () => console.log('before exit'));
