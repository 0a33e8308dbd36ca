// A call that calls back by way of a tick lets its caller finish first.
let bar;
function someAsyncApiCall(callback) {
  process.nextTick(callback);
}
someAsyncApiCall(() => {
  console.log('bar', bar);
});
bar = 1;
