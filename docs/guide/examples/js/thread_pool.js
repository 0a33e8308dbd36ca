// The pool is shared: with one thread, a file waits for a key that is derived.
// Files, names of hosts, zlib and most of crypto are the pool's; sockets and timers never wait for it.
process.env.UV_THREADPOOL_SIZE = '1'; // It is read when the pool begins, and not again.
const crypto = require('crypto');
const fs = require('fs');
const net = require('net');

crypto.pbkdf2('secret', 'salt', 2_000_000, 64, 'sha512', () => console.log('key'));
fs.stat(__filename, () => console.log('stat, which waited for the key'));

const server = net.createServer((socket) => {
  console.log('a connection, which did not wait');
  socket.destroy();
  server.close();
});
server.listen(0, '127.0.0.1', () => net.connect(server.address().port, '127.0.0.1').resume());
