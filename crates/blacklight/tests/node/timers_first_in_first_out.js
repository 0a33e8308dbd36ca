// Timers of one duration run in the order in which they were started.
for (const name of ['a', 'b', 'c', 'd']) {
  setTimeout(() => console.log(name), 10);
}
