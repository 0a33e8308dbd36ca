// An unreferenced immediate runs if the loop takes its turn anyway.
setImmediate(() => console.log('unreferenced')).unref();
setImmediate(() => console.log('referenced'));
