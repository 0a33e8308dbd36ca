// A process that does not end: somebody has forgotten an interval, and there is a server.
'use strict';
const http = require('http');

function pollForUpdates() {}

setInterval(pollForUpdates, 5000);
const server = http.createServer((request, response) => response.end());
server.listen(0, '127.0.0.1', () => console.log(`ready ${server.address().port}`));
