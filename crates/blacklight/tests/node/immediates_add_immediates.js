// Immediates that are added while others run wait for the next turn.
function generation(number) {
  for (const name of ['a', 'b']) {
    setImmediate(() => {
      console.log(number, name);
      if (name === 'a' && number < 3) generation(number + 1);
    });
  }
}
generation(1);
