// An error in a timer that somebody catches leaves the others as they were.
process.on('uncaughtException', (error) => console.log('caught', error.message));
setTimeout(() => console.log('a'), 10);
setTimeout(() => {
  throw new Error('b');
}, 10);
setTimeout(() => console.log('c'), 10);
setTimeout(() => console.log('d'), 100);
