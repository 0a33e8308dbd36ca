// Ticks and microtasks run between timers of different durations that are due together.
function busy(ms) {
  const begun = Date.now();
  while (Date.now() - begun < ms);
}
for (const delay of [60, 20, 100]) {
  setTimeout(() => {
    console.log('timer', delay);
    queueMicrotask(() => console.log('microtask', delay));
    process.nextTick(() => console.log('tick', delay));
  }, delay);
}
busy(150);
