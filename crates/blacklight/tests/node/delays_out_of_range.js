// Whatever is no delay is one millisecond: these are all in one list.
process.on('warning', (warning) => console.log(warning.name));
for (const delay of [0, -1, NaN, 0.5, 1.9, 2 ** 31, 1]) {
  setTimeout(() => console.log('delay', delay), delay);
}
