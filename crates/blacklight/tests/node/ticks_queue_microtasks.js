// A microtask that a tick queues waits until there are no ticks left.
process.nextTick(() => {
  console.log('tick 1');
  queueMicrotask(() => console.log('microtask 1'));
  process.nextTick(() => {
    console.log('tick 3');
    queueMicrotask(() => console.log('microtask 2'));
  });
});
process.nextTick(() => console.log('tick 2'));
