// What the listener schedules is done, and the listener called again.
let encores = 0;
process.on('beforeExit', () => {
  console.log('before exit');
  encores += 1;
  if (encores === 1) setTimeout(() => console.log('timeout'), 10);
  if (encores === 2) setImmediate(() => console.log('immediate'));
});
process.on('exit', () => console.log('exit'));
console.log('main');
