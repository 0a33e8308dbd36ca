// Of two lists that are due, the first runs all of its due timers before the second.
function busy(ms) {
  const begun = Date.now();
  while (Date.now() - begun < ms);
}
setTimeout(() => console.log('20 ms, started first'), 20);
setTimeout(() => console.log('40 ms'), 40);
busy(30);
setTimeout(() => console.log('20 ms, started second'), 20);
busy(40);
