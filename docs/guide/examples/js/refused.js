// A connection to a port that nobody listens at: the call succeeds, and the error is told of later.
const net = require('net');

const server = net.createServer().listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  server.close(() => {
    const client = net.connect(port, '127.0.0.1');
    client.on('error', (error) => console.log(error.code));
    client.on('close', () => console.log('closed'));
    console.log('the call has succeeded');
  });
});
