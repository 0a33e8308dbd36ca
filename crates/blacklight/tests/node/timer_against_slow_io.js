// A timer runs after its delay at the earliest, and later if a callback takes its time.
const fs = require('fs');

function someAsyncOperation(callback) {
  fs.readFile(__filename, callback);
}

const timeoutScheduled = Date.now();

setTimeout(() => {
  const delay = Date.now() - timeoutScheduled;
  console.log(`${delay >= 500 ? 500 : delay}ms have passed since I was scheduled`);
}, 500);

someAsyncOperation(() => {
  const startCallback = Date.now();
  while (Date.now() - startCallback < 510) {
    // Past the time at which the timer is due.
  }
  console.log('slow callback is done');
});
