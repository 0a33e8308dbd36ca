// A list that is emptied while its last timer runs is replaced by a new one.
const timer = setTimeout(() => {
  clearTimeout(timer);
  setTimeout(() => console.log('second'), 20);
  console.log('first');
}, 20);
process.on('exit', () => console.log('exit'));
