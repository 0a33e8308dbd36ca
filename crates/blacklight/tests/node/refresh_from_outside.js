// Refreshed before it is due, a timer waits for its whole delay again.
const refreshed = setTimeout(() => console.log('refreshed'), 200);
setTimeout(() => {
  console.log('refresh');
  refreshed.refresh();
}, 100);
setTimeout(() => console.log('not refreshed'), 250);
