// No tick runs between two listeners.
process.on('beforeExit', () => {
  console.log('first');
  process.nextTick(() => console.log('tick'));
});
process.on('beforeExit', () => console.log('second'));
