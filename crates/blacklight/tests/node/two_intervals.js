// Intervals of one duration take turns.
for (const name of ['a', 'b']) {
  let runs = 0;
  const interval = setInterval(() => {
    runs += 1;
    console.log(name, runs);
    if (runs === 3) clearInterval(interval);
  }, 15);
}
