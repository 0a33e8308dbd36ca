// A timer that refreshes itself runs again.
let runs = 0;
const timer = setTimeout(() => {
  runs += 1;
  console.log('run', runs);
  if (runs < 3) timer.refresh();
}, 10);
process.on('exit', () => console.log('exit'));
