// A server under load: `node server.js http` or `node server.js udp`, on port 8000 of loopback.
// It says "ready" when it can be asked.
'use strict';
const port = 8000;
const ready = () => console.log('ready');

const servers = {
  http() {
    const http = require('node:http');
    const answer = (request, response) => {
      response.setHeader('Content-Type', 'text/plain');
      response.end('Hello, world!\n');
    };
    http.createServer(answer).listen(port, '127.0.0.1', ready);
  },

  udp() {
    const socket = require('node:dgram').createSocket('udp4');
    socket.on('message', (message, from) => socket.send(message, from.port, from.address));
    socket.bind(port, '127.0.0.1', ready);
  },
};

servers[process.argv[2]]();
