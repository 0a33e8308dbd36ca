// An interval is armed again after its callback, so what that sets goes first.
let runs = 0;
const interval = setInterval(() => {
  runs += 1;
  console.log('interval', runs);
  if (runs === 2) clearInterval(interval);
  else setTimeout(() => console.log('set by the interval'), 20);
}, 20);
setTimeout(() => console.log('timeout'), 20);
