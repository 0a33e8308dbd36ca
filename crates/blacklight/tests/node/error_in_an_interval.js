// An interval goes on after an error.
let runs = 0;
process.on('uncaughtException', (error) => console.log('caught', error.message));
const interval = setInterval(() => {
  runs += 1;
  if (runs === 3) clearInterval(interval);
  throw new Error(`run ${runs}`);
}, 10);
process.on('exit', () => console.log('exit'));
