// Chains of promises take turns, link by link.
const chain = (name) => Promise.resolve()
  .then(() => console.log(name, 1))
  .then(() => console.log(name, 2))
  .then(() => console.log(name, 3));
chain('a');
chain('b');
process.nextTick(() => console.log('tick'));
