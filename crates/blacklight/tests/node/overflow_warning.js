// A delay that does not fit makes a warning, which comes by way of a tick.
process.on('warning', (warning) => console.log(`${warning.name}: ${warning.message}`));
setTimeout(() => console.log('timeout'), 3000000000);
setInterval(function() {
  console.log('interval');
  clearInterval(this);
}, Infinity);
setTimeout(() => {}, 1e21).unref();
process.nextTick(() => console.log('tick'));
console.log('main');
