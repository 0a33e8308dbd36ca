// Immediates that add immediates for ever do not keep timers from running.
let done = false;
let turns = 0;
function again() {
  turns += 1;
  if (!done) setImmediate(again);
}
setImmediate(again);
setTimeout(() => {
  done = true;
  console.log('timeout, after more than one turn:', turns > 1);
}, 100);
