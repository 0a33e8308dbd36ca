// An interval that gives up its reference lets the loop end.
let runs = 0;
const interval = setInterval(() => {
  runs += 1;
  console.log('run', runs);
  if (runs === 2) interval.unref();
}, 10);
process.on('exit', () => console.log('exit'));
