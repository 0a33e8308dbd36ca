// Ticks and microtasks run between two timers of one list.
for (const name of ['a', 'b', 'c']) {
  setTimeout(() => {
    console.log('timer', name);
    queueMicrotask(() => console.log('microtask', name));
    process.nextTick(() => console.log('tick', name));
  }, 10);
}
