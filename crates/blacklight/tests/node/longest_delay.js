// The longest delay there is makes no warning.
process.on('warning', (warning) => console.log(warning.name));
const timer = setTimeout(() => console.log('never'), 2 ** 31 - 1);
setTimeout(() => {
  console.log('clear');
  clearTimeout(timer);
}, 10);
