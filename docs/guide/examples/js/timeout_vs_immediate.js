// A time-out of zero against an immediate, set in an I/O callback: the immediate comes first.
// The check phase follows right after the poll phase, and the timers only in the next turn.
const fs = require('fs');

fs.readFile(__filename, () => {
  console.log('the file is read');
  setTimeout(() => console.log('timeout'), 0);
  setImmediate(() => console.log('immediate'));
});
