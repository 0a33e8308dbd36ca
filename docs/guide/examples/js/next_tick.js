// A callback that is put off to the next tick sees what the program has set meanwhile.
let bar;

function someAsyncApiCall(callback) {
  process.nextTick(callback);
}

someAsyncApiCall(() => console.log('bar', bar));

bar = 1;
console.log('the main program is over');
