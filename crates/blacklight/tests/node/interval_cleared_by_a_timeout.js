// An interval runs until somebody clears it.
const interval = setInterval(() => console.log('interval'), 100);
setTimeout(() => {
  console.log('clear');
  clearInterval(interval);
}, 250);
