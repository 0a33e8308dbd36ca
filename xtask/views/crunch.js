// An HTTP server whose handler computes for 300 ms.
'use strict';
const http = require('http');

function crunch(ms) {
  const end = performance.now() + ms;
  let sum = 0;
  while (performance.now() < end) {
    for (let i = 0; i < 1000; i++) sum += Math.sqrt(i);
  }
  return sum;
}

const server = http.createServer((request, response) => {
  response.end(`${crunch(300)}\n`);
});
server.listen(0, '127.0.0.1', () => console.log(`ready ${server.address().port}`));
