// A list whose next timer is not due yet waits for it, and others go first.
setTimeout(() => console.log('80, at 0'), 80);
setTimeout(() => console.log('120, at 0'), 120);
setTimeout(() => {
  console.log('70, at 0');
  setTimeout(() => console.log('80, at 70'), 80);
}, 70);
