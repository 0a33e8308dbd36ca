// Refreshed, a timer goes to the end of its list.
const a = setTimeout(() => console.log('a'), 20);
setTimeout(() => console.log('b'), 20);
a.refresh();
