// One callback for each phase that JavaScript sees, in one turn of the loop but for the first.
// The pending, idle and prepare phases are Node's own: it has no call that leads there.
const net = require('net');

const server = net.createServer().listen(0, '127.0.0.1', () => {
  const client = net.connect(server.address().port, '127.0.0.1', () => {
    console.log('poll: there is a connection');
    server.close();
    setTimeout(() => {
      console.log('timers: it is due');
      setImmediate(() => {
        console.log('check: right after the poll');
        client.destroy();
      });
      client.on('close', () => console.log('closing: the socket'));
    }, 1);
  });
});
