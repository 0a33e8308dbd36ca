// A timer that was cleared keeps nothing alive, nor does one that was cleared while it ran.
const long = setTimeout(() => console.log('never'), 60000);
const interval = setInterval(() => {
  console.log('interval');
  clearTimeout(long);
  clearInterval(interval);
  setTimeout(() => console.log('never'), 50).unref();
}, 10);
process.on('exit', () => console.log('exit'));
