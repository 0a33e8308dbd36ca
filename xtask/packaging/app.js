// A server that is asked once; then says on which library it ran. Started with `--poller poll`, ours
// has no epoll descriptor, and what Node carries always has.
'use strict';
const fs = require('fs');
const http = require('http');

const server = http.createServer((request, response) => response.end('served')).listen(0, '127.0.0.1', () => {
  http.get({ port: server.address().port, agent: false }, (response) => {
    response.setEncoding('utf8').on('data', (text) => console.log(text)).on('end', () => {
      server.close();
      const open = fs.readdirSync('/proc/self/fd').map((name) => {
        try { return fs.readlinkSync(`/proc/self/fd/${name}`); } catch { return ''; }
      });
      console.log(open.some((file) => file.includes('eventpoll')) ? 'carried' : 'ours');
    });
  });
});
