// Ticks that queue ticks are all run before the loop goes on.
setImmediate(() => console.log('immediate'));
queueMicrotask(() => console.log('microtask'));
function again(depth) {
  console.log('tick', depth);
  if (depth < 4) process.nextTick(again, depth + 1);
}
process.nextTick(again, 1);
