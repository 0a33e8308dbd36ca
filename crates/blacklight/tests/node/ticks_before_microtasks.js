// All ticks come before any microtask, whatever the order of queueing.
queueMicrotask(() => console.log('microtask 1'));
process.nextTick(() => console.log('tick 1'));
queueMicrotask(() => console.log('microtask 2'));
process.nextTick(() => console.log('tick 2'));
console.log('main');
