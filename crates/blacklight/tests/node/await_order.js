// What follows an await is a microtask.
async function work(name) {
  console.log(name, 'begins');
  await null;
  console.log(name, 'goes on');
  await null;
  console.log(name, 'ends');
}
work('first');
work('second');
process.nextTick(() => console.log('tick'));
console.log('main');
