// Required by the guide's programs in JavaScript. It notes when each line is printed, and stops the process
// when it exits, so that somebody may read what was recorded before the loop is closed.
const stamps = [];
const log = console.log;

console.log = (...values) => {
  stamps.push(`${process.hrtime.bigint()}\n`);
  log(...values);
};

process.on('exit', () => {
  require('fs').writeFileSync(process.env.GUIDE_STAMPS, stamps.join(''));
  process.kill(process.pid, 'SIGSTOP');
});
