// Ticks and microtasks run between two immediates.
for (const name of ['a', 'b', 'c']) {
  setImmediate(() => {
    console.log('immediate', name);
    queueMicrotask(() => console.log('microtask', name));
    process.nextTick(() => console.log('tick', name));
  });
}
