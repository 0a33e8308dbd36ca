// A timer that clears itself while it runs, runs this once.
const timer = setTimeout(() => {
  console.log('runs');
  clearTimeout(timer);
  timer.refresh();
  setTimeout(() => console.log('another'), 10);
}, 10);
