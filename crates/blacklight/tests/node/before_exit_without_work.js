// Nothing scheduled: the listener is called once.
process.on('beforeExit', () => console.log('before exit'));
process.on('exit', () => console.log('exit'));
setTimeout(() => console.log('timeout'), 10);
