// References of a timer, before and after it has run.
const timer = setTimeout(() => console.log('timer', timer.hasRef()), 10);
console.log(timer.hasRef());
console.log(timer.unref().hasRef());
console.log(timer.ref().hasRef());
setTimeout(() => console.log('after', timer.hasRef()), 100);
