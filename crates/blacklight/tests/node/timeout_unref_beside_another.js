// An unreferenced timer runs if the loop is still there when it is due.
setTimeout(() => console.log('unreferenced'), 10).unref();
setTimeout(() => console.log('referenced'), 100);
setTimeout(() => console.log('never'), 400).unref();
