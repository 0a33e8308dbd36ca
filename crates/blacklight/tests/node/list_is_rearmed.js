// A list whose next timer is not due yet waits for it, and others go first.
setTimeout(() => console.log('200, at 0'), 200);
setTimeout(() => console.log('300, at 0'), 300);
setTimeout(() => {
  console.log('150, at 0');
  setTimeout(() => console.log('200, at 150'), 200);
}, 150);
