// nextTick is sooner than setImmediate: ticks run when the present callback is over, before the loop
// goes on, and immediates in the check phase.
setImmediate(() => {
  console.log('immediate 1');
  process.nextTick(() => console.log('tick set by immediate 1'));
});
setImmediate(() => console.log('immediate 2'));
process.nextTick(() => console.log('tick'));
console.log('main');
