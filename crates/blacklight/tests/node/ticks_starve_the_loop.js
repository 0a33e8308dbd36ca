// The loop does not go on while there are ticks, even if a timer is long due.
setTimeout(() => console.log('timeout'), 1);
let count = 0;
function again() {
  count += 1;
  if (count < 100000) process.nextTick(again);
  else console.log('ticks', count);
}
process.nextTick(again);
