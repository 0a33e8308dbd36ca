// I/O that is begun before the exit is finished.
const fs = require('fs');
let first = true;
process.on('beforeExit', () => {
  console.log('before exit');
  if (first) {
    first = false;
    fs.stat(__filename, () => console.log('stat'));
  }
});
