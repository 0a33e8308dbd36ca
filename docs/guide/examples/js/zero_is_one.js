// Delays below 1 ms, above 2^31 - 1 ms and what is no number are 1 ms. All these timers are in one
// list, and run in the order in which they were set.
process.on('warning', (warning) => console.log(`${warning.name}: ${warning.message.split('\n')[0]}`));

for (const delay of [1, 0, -1, NaN, 'soon', 0.5, 2 ** 31]) {
  setTimeout(() => console.log(`the timer of ${delay}`), delay);
}
