// A tick that a microtask queues waits until there are no microtasks left.
queueMicrotask(() => {
  console.log('microtask 1');
  process.nextTick(() => {
    console.log('tick');
    queueMicrotask(() => console.log('microtask 3'));
  });
  queueMicrotask(() => console.log('microtask 2'));
});
setImmediate(() => console.log('immediate'));
