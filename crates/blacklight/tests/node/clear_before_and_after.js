// Clearing before the loop runs, twice, and after the timer has run.
const never = setTimeout(() => console.log('never'), 10);
clearTimeout(never);
clearTimeout(never);
const once = setTimeout(() => console.log('once'), 10);
setTimeout(() => {
  clearTimeout(once);
  console.log('cleared what has run');
}, 100);
