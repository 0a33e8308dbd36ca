// Ticks and microtasks run after each callback, ticks first; what they queue runs before the loop goes on.
setImmediate(() => {
  console.log('immediate 1');
  Promise.resolve().then(() => console.log('  a promise'));
  process.nextTick(() => {
    console.log('  a tick');
    Promise.resolve().then(() => console.log('  a promise that the tick has made'));
  });
});
setImmediate(() => console.log('immediate 2'));

(async () => {
  console.log('an async function runs until its first await');
  await null;
  console.log('  what follows is a microtask');
})();
queueMicrotask(() => console.log('  another microtask'));
process.nextTick(() => console.log('  a tick is first'));
console.log('main');
