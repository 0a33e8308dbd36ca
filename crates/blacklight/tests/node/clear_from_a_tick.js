// A tick after the first timer may clear the second, which is due already.
setTimeout(() => {
  console.log('a');
  process.nextTick(() => clearTimeout(b));
}, 10);
const b = setTimeout(() => console.log('b'), 10);
setTimeout(() => console.log('c'), 10);
