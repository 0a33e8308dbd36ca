// A timer may clear one that is due in the same list.
setTimeout(() => {
  console.log('a');
  clearTimeout(b);
}, 10);
const b = setTimeout(() => console.log('b'), 10);
setTimeout(() => console.log('c'), 10);
