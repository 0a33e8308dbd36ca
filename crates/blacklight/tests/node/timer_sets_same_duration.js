// A timer that is set by one of the same duration comes after those that wait already.
setTimeout(() => {
  console.log('a');
  setTimeout(() => console.log('a again'), 20);
}, 20);
setTimeout(() => {
  console.log('b');
  setTimeout(() => console.log('b again'), 20);
}, 20);
