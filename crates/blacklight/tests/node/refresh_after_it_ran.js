// A timer that has run is started again by a refresh, and keeps the loop alive again.
const timer = setTimeout(() => console.log('run'), 10);
setTimeout(() => {
  console.log('refresh');
  timer.refresh();
}, 100);
