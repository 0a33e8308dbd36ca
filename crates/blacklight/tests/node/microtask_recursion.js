// Microtasks that queue microtasks are all run before the loop goes on.
setImmediate(() => console.log('immediate'));
function again(depth) {
  console.log('microtask', depth);
  if (depth < 4) queueMicrotask(() => again(depth + 1));
}
queueMicrotask(() => again(1));
queueMicrotask(() => console.log('other'));
