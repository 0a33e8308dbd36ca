// A request in progress keeps the loop alive, beside what nobody waits for.
const fs = require('fs');
setTimeout(() => console.log('never'), 60000).unref();
fs.writeFile('/dev/null', 'light', (error) => console.log('written', error === null));
process.on('exit', () => console.log('exit'));
