// Nor does a list run a timer that was appended to it while it runs.
function busy(ms) {
  const begun = Date.now();
  while (Date.now() - begun < ms);
}
setTimeout(() => {
  console.log('first');
  setTimeout(() => console.log('appended'), 5);
  setImmediate(() => console.log('immediate'));
  busy(20);
}, 5);
setTimeout(() => console.log('second'), 5);
busy(20);
