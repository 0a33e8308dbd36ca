// An unreferenced timer does not bring the loop back to life.
process.on('beforeExit', () => {
  console.log('before exit');
  setTimeout(() => console.log('never'), 10).unref();
});
