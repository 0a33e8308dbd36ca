// References of an immediate, before and after it has run.
const immediate = setImmediate(() => console.log('immediate', immediate.hasRef()));
console.log(immediate.hasRef());
console.log(immediate.unref().hasRef());
console.log(immediate.unref().hasRef());
console.log(immediate.ref().hasRef());
setImmediate(() => console.log('after', immediate.ref().hasRef()));
