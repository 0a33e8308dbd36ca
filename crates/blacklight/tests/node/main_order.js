// What the main program schedules, in the order in which it runs.
setTimeout(() => console.log('timeout'), 300);
setImmediate(() => console.log('immediate'));
queueMicrotask(() => console.log('microtask'));
process.nextTick(() => console.log('tick'));
console.log('main');
