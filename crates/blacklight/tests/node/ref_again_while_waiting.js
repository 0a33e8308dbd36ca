// A reference that is taken back in time keeps the loop alive.
const timer = setTimeout(() => console.log('timer'), 200);
timer.unref();
setTimeout(() => {
  console.log('ref');
  timer.ref();
}, 50);
