// Timers of different durations run as they come due.
setTimeout(() => console.log('last'), 200);
setTimeout(() => console.log('first'), 10);
setTimeout(() => console.log('middle'), 100);
