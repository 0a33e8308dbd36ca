// A timer that was cleared stays so.
const timer = setTimeout(() => console.log('never'), 10);
clearTimeout(timer);
timer.refresh();
setTimeout(() => console.log('end'), 100);
