// An interval runs until it clears itself, with ticks after each run.
let runs = 0;
const interval = setInterval(() => {
  runs += 1;
  console.log('run', runs);
  process.nextTick(() => console.log('tick'));
  if (runs === 3) clearInterval(interval);
}, 10);
