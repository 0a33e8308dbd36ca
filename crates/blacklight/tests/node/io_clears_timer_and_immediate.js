// What an I/O callback schedules and clears does not keep the loop alive.
const fs = require('fs');
fs.stat(__filename, () => {
  console.log('stat');
  clearTimeout(setTimeout(() => console.log('never'), 0));
  clearImmediate(setImmediate(() => console.log('never')));
});
process.on('beforeExit', () => console.log('before exit'));
