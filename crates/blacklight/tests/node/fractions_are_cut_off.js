// 30.9 and 30 milliseconds are one list.
setTimeout(() => console.log('150'), 150);
setTimeout(() => console.log('30.9'), 30.9);
setTimeout(() => console.log('30'), 30);
