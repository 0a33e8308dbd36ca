// Nobody waits for an unreferenced timer.
setTimeout(() => console.log('never'), 10).unref();
setInterval(() => console.log('never'), 10).unref();
process.on('exit', () => console.log('exit'));
