// An error in an I/O callback leaves what it has scheduled.
const fs = require('fs');
process.on('uncaughtException', (error) => console.log('caught', error.message));
fs.stat(__filename, () => {
  setTimeout(() => console.log('timeout'), 20);
  setImmediate(() => console.log('immediate'));
  throw new Error('stat');
});
