// A timer set by a timer waits for a later turn, even if it is due when the phase ends.
function busy(ms) {
  const begun = Date.now();
  while (Date.now() - begun < ms);
}
setTimeout(() => {
  console.log('outer 1');
  setTimeout(() => console.log('inner'), 1);
  setImmediate(() => console.log('immediate'));
  busy(20);
}, 5);
setTimeout(() => console.log('outer 2'), 5);
busy(20);
