// A timer against I/O: a callback of the poll phase keeps a due timer waiting.
// A timer is set to 1 s. A file is read, and the callback computes until the timer is 10 ms overdue.
// A time-out is the least time that passes, and never the most.
const fs = require('fs');

const scheduled = process.hrtime.bigint();
const passed = () => Number(process.hrtime.bigint() - scheduled) / 1e6;

setTimeout(() => {
  console.log(`the timer, not before 1010 ms: ${passed() >= 1010}`);
}, 1000);

fs.readFile(__filename, () => {
  console.log('the file is read');
  while (passed() < 1010) {
    // Do nothing.
  }
  console.log('the callback is over');
});
