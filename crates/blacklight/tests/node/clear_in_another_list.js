// A timer may clear one of another duration; an emptied list is forgotten.
setTimeout(() => {
  console.log('a');
  clearTimeout(b);
}, 10);
const b = setTimeout(() => console.log('b'), 100);
setTimeout(() => console.log('c'), 200);
