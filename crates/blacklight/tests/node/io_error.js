// An error of the operation goes to the callback, which is followed by its ticks.
const fs = require('fs');
fs.readFile('/nowhere/at/all', (error) => {
  process.nextTick(() => console.log('tick'));
  console.log(error.code);
});
