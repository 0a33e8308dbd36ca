// Each I/O callback has its ticks before the next.
const fs = require('fs');
function stat(depth) {
  fs.stat(__filename, (error, stats) => {
    console.log('stat', depth, stats.isFile());
    process.nextTick(() => console.log('tick', depth));
    setImmediate(() => console.log('immediate', depth));
    if (depth < 3) setImmediate(() => stat(depth + 1));
  });
}
stat(1);
