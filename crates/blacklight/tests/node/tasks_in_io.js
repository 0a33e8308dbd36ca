// From an I/O callback: ticks, microtasks, immediates, timers.
const fs = require('fs');
fs.stat(__filename, () => {
  setTimeout(() => console.log('timeout'), 0);
  setImmediate(() => console.log('immediate'));
  queueMicrotask(() => console.log('microtask'));
  process.nextTick(() => {
    console.log('tick');
    process.nextTick(() => console.log('tick of the tick'));
  });
  console.log('stat');
});
console.log('main');
