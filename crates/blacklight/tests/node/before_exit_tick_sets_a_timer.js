// But what they schedule does.
let first = true;
process.on('beforeExit', () => {
  console.log('before exit');
  if (first) {
    first = false;
    process.nextTick(() => setTimeout(() => console.log('timeout'), 10));
  }
});
