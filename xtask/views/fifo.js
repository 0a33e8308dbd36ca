// A callback that reads a named pipe into which nobody writes.
'use strict';
const fs = require('fs');

function readSettings(path) {
  return fs.readFileSync(path, 'utf8');
}

setTimeout(() => readSettings(process.argv[2]), 10);
console.log('ready');
