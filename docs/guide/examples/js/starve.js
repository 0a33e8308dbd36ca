// Ticks that set ticks keep the loop from going on. Immediates that set immediates do not: each of
// them waits for the next turn, and the timers have theirs in between.
let ticks = 0;
let done = false;

function tick() {
  if (++ticks < 1000) process.nextTick(tick);
}

function again() {
  if (!done) setImmediate(again);
}

setImmediate(() => {
  console.log(`the first immediate, after ${ticks} ticks`);
  setTimeout(() => {
    console.log('the timer, among immediates that never end by themselves');
    done = true;
  }, 1);
  again();
});
tick();
