// Nobody waits for an unreferenced immediate.
setImmediate(() => console.log('never')).unref();
process.on('exit', () => console.log('exit'));
