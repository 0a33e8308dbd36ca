// An interval runs until somebody clears it.
const interval = setInterval(() => console.log('interval'), 40);
setTimeout(() => {
  console.log('clear');
  clearInterval(interval);
}, 100);
