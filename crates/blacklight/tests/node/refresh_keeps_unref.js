// A refresh does not change whether the loop waits for the timer.
const timer = setTimeout(() => console.log('run'), 10);
timer.unref();
setTimeout(() => {
  timer.refresh();
  console.log('has a reference:', timer.hasRef());
}, 100);
process.on('exit', () => console.log('exit'));
