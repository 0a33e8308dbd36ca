// 'close' of a socket comes from the closing phase, after the immediates of the same turn.
const net = require('net');

const server = net.createServer().listen(0, '127.0.0.1', () => {
  const client = net.connect(server.address().port, '127.0.0.1', () => {
    console.log('connected');
    client.on('close', () => console.log('closed'));
    setImmediate(() => console.log('immediate'));
    process.nextTick(() => console.log('tick'));
    client.destroy();
    server.close();
  });
});
