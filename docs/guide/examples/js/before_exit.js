// The loop ends when nothing keeps it alive. Then Node says so, and runs it again if somebody has found work.
let rounds = 0;

process.on('beforeExit', () => {
  console.log('the loop has ended');
  if (++rounds === 1) setTimeout(() => console.log('the timer of the second run'), 1);
});
setTimeout(() => console.log('the timer of the first run'), 1);
