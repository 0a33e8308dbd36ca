// An echo server with a client that says one line, in one process and one thread.
const net = require('net');

const server = net.createServer((connection) => {
  console.log('server: a client has come');
  connection.on('data', (bytes) => {
    console.log(`server: read "${bytes}"`);
    connection.write(bytes);
  });
  connection.on('close', () => {
    console.log('server: connection closed');
    server.close();
  });
});

server.listen(0, '127.0.0.1', () => {
  const client = net.connect(server.address().port, '127.0.0.1', () => client.write('hello'));
  client.on('data', (bytes) => {
    console.log(`client: got back "${bytes}"`);
    client.end();
  });
});
