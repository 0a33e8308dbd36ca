// Drives Node.js on the libuv under test: `node node_checks.js CHECK`.
//
// One check is one process, so that a check which hangs or dies takes no other with it.
// A check passes by returning; it fails by throwing or by the runner's time-out.
'use strict';

const assert = require('assert');
const child_process = require('child_process');
const cluster = require('cluster');
const dgram = require('dgram');
const dns = require('dns');
const { once } = require('events');
const fs = require('fs');
const http = require('http');
const net = require('net');
const os = require('os');
const path = require('path');
const { setTimeout: sleep } = require('timers/promises');
const worker_threads = require('worker_threads');

const scratch = () => fs.mkdtempSync(path.join(os.tmpdir(), 'node-check-'));

async function gather(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

// Waits until `seen` holds, without guessing how long that takes.
async function until(seen) {
  while (!seen()) await sleep(5);
}

const checks = {
  // Due order, immediates, repeats, unref.
  async timers() {
    const order = [];
    setTimeout(() => order.push(30), 30);
    setTimeout(() => order.push(10), 10);
    setTimeout(() => order.push(20), 20);
    const never = setTimeout(() => assert.fail('an unref timer of an hour'), 3600e3);
    never.unref();
    process.nextTick(() => order.push('tick'));
    Promise.resolve().then(() => order.push('microtask'));
    // After I/O the check phase comes before the timers, however late it is.
    const turn = await new Promise((resolve) => fs.stat('/', () => {
      const turn = [];
      setTimeout(() => { turn.push('timer'); resolve(turn); }, 0);
      setImmediate(() => turn.push('immediate'));
    }));
    assert.deepStrictEqual(turn, ['immediate', 'timer']);
    let beats = 0;
    const begin = process.hrtime.bigint();
    await new Promise((resolve) => {
      const interval = setInterval(() => {
        if (++beats === 5) { clearInterval(interval); resolve(); }
      }, 10);
    });
    assert(process.hrtime.bigint() - begin >= 48000000n, 'five beats of 10 ms came early');
    await sleep(40);
    assert.deepStrictEqual(order, ['tick', 'microtask', 10, 20, 30]);
  },

  async event_loop_metrics() {
    const { performance, monitorEventLoopDelay } = require('perf_hooks');
    const histogram = monitorEventLoopDelay({ resolution: 5 });
    histogram.enable();
    const before = performance.eventLoopUtilization();
    await sleep(100);
    const idle = performance.eventLoopUtilization(before);
    assert(idle.idle > 0, `idle ${idle.idle}`);
    histogram.disable();
    assert(histogram.max > 0);
  },

  async fs() {
    const dir = scratch();
    const file = path.join(dir, 'a');
    const body = Buffer.alloc(3 << 20, 'blacklight');
    await fs.promises.writeFile(file, body);
    assert((await fs.promises.readFile(file)).equals(body));
    assert(fs.readFileSync(file).equals(body));
    await fs.promises.copyFile(file, file + '2');
    const stat = await fs.promises.stat(file + '2', { bigint: true });
    assert.strictEqual(stat.size, BigInt(body.length));
    assert(stat.mtimeNs > 0n && stat.birthtimeNs > 0n);
    await fs.promises.symlink('a', path.join(dir, 'link'));
    assert.strictEqual(await fs.promises.readlink(path.join(dir, 'link')), 'a');
    assert.strictEqual(await fs.promises.realpath(path.join(dir, 'link')), fs.realpathSync(file));
    await fs.promises.mkdir(path.join(dir, 'x/y/z'), { recursive: true });
    const names = (await fs.promises.readdir(dir, { withFileTypes: true }))
      .map((entry) => `${entry.name}${entry.isDirectory() ? '/' : ''}`).sort();
    assert.deepStrictEqual(names, ['a', 'a2', 'link', 'x/']);
    const listed = [];
    for await (const entry of await fs.promises.opendir(dir)) listed.push(entry.name);
    assert.deepStrictEqual(listed.sort(), ['a', 'a2', 'link', 'x']);
    await fs.promises.utimes(file, 1000, 2000.5);
    assert.strictEqual((await fs.promises.stat(file)).mtimeMs, 2000500);
    await fs.promises.truncate(file, 10);
    const handle = await fs.promises.open(file, 'r+');
    await handle.write('HELLO', 0);
    await handle.writev([Buffer.from('a'), Buffer.from('bc')], 5);
    await handle.sync();
    const { bytesRead, buffers } = await handle.readv([Buffer.alloc(4), Buffer.alloc(4)], 0);
    assert.strictEqual(Buffer.concat(buffers).toString('latin1', 0, bytesRead), 'HELLOabc');
    await handle.close();
    await assert.rejects(fs.promises.stat(path.join(dir, 'none')),
      { code: 'ENOENT', errno: -2, syscall: 'stat' });
    await assert.rejects(fs.promises.rmdir(dir), { code: 'ENOTEMPTY' });
    await fs.promises.rm(dir, { recursive: true });
    assert(!fs.existsSync(dir));
  },

  // Streams of a file through a pipeline, with gzip on the thread pool in the middle.
  async fs_streams() {
    const { pipeline } = require('stream/promises');
    const zlib = require('zlib');
    const dir = scratch();
    const body = require('crypto').randomBytes(2 << 20);
    fs.writeFileSync(path.join(dir, 'in'), body);
    await pipeline(fs.createReadStream(path.join(dir, 'in')), zlib.createGzip(),
      zlib.createGunzip(), fs.createWriteStream(path.join(dir, 'out')));
    assert(fs.readFileSync(path.join(dir, 'out')).equals(body));
    fs.rmSync(dir, { recursive: true });
  },

  async net() {
    const server = net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const body = Buffer.alloc(8 << 20, 'over the wire ');
    const clients = Array.from({ length: 8 }, async () => {
      const socket = net.connect(server.address().port, '127.0.0.1');
      socket.setNoDelay(true);
      socket.end(body);
      assert((await gather(socket)).equals(body));
    });
    await Promise.all(clients);
    await new Promise((resolve) => server.close(resolve));
    const refused = net.connect(1, '127.0.0.1');
    const [error] = await once(refused, 'error').catch((e) => [e]);
    assert.strictEqual(error.code, 'ECONNREFUSED');
  },

  async net_ipv6_and_reset() {
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.resetAndDestroy());
    });
    await once(server.listen(0, '::1'), 'listening');
    const socket = net.connect(server.address().port, '::1');
    socket.write('x');
    const [error] = await once(socket, 'error').catch((e) => [e]);
    assert.strictEqual(error.code, 'ECONNRESET');
    server.close();
  },

  async unix_socket() {
    const dir = scratch();
    const server = net.createServer((socket) => socket.end('from the pipe'));
    await once(server.listen(path.join(dir, 's')), 'listening');
    const body = await gather(net.connect(path.join(dir, 's')));
    assert.strictEqual(String(body), 'from the pipe');
    await new Promise((resolve) => server.close(resolve));
    assert(!fs.existsSync(path.join(dir, 's')), 'the socket file is left behind');
    fs.rmSync(dir, { recursive: true });
  },

  async http() {
    const server = http.createServer(async (request, response) => {
      const body = await gather(request);
      response.setHeader('x-length', body.length);
      response.end(body);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
    const post = (body) => new Promise((resolve, reject) => {
      const options = { port: server.address().port, host: '127.0.0.1', method: 'POST', agent };
      http.request(options, (response) => gather(response).then(resolve, reject))
        .on('error', reject).end(body);
    });
    const bodies = Array.from({ length: 100 }, (_, n) => Buffer.alloc(n * 1000, `${n}`));
    const answers = await Promise.all(bodies.map(post));
    answers.forEach((answer, n) => assert(answer.equals(bodies[n]), `answer ${n}`));
    agent.destroy();
    await new Promise((resolve) => server.close(resolve));
  },

  async http_under_load() {
    const server = http.createServer((request, response) => response.end('hello'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${server.address().port}/`;
    const wrk = child_process.spawn('wrk', ['-t1', '-c64', '-d3s', '--timeout', '30s', url]);
    const said = String(await gather(wrk.stdout));
    const requests = Number(/(\d+) requests in/.exec(said)?.[1]);
    assert(requests > 100, said);
    assert(!/Socket errors|Non-2xx/.test(said), said);
    server.closeAllConnections();
    server.close();
  },

  async child_processes() {
    const sh = child_process.spawn('sh', ['-c', 'cat; echo err >&2; exit 7']);
    const body = Buffer.alloc(1 << 20, 'x');
    sh.stdin.end(body);
    const exit = once(sh, 'close');
    const [out, err] = await Promise.all([gather(sh.stdout), gather(sh.stderr)]);
    assert(out.equals(body));
    assert.strictEqual(String(err), 'err\n');
    assert.deepStrictEqual(await exit, [7, null]);
    const sleeper = child_process.spawn('sleep', ['1000']);
    await once(sleeper, 'spawn');
    sleeper.kill('SIGTERM');
    assert.deepStrictEqual(await once(sleeper, 'exit'), [null, 'SIGTERM']);
    const missing = child_process.spawn('/nonexistent/program');
    const [error] = await once(missing, 'error').catch((e) => [e]);
    assert.strictEqual(error.code, 'ENOENT');
    const env = child_process.spawn('sh', ['-c', 'pwd; echo $COLOUR'],
      { cwd: '/', env: { COLOUR: 'ultraviolet', PATH: process.env.PATH } });
    assert.strictEqual(String(await gather(env.stdout)), '/\nultraviolet\n');
    const many = Array.from({ length: 40 }, async (_, n) =>
      assert.deepStrictEqual((await once(child_process.spawn('sh', ['-c', `exit ${n}`]), 'exit'))[0], n));
    await Promise.all(many);
  },

  // The synchronous calls run a loop of their own inside Node.
  async child_processes_sync() {
    const result = child_process.spawnSync('sh', ['-c', 'cat; echo e >&2; exit 3'],
      { input: Buffer.alloc(200000, 'y') });
    assert.strictEqual(result.status, 3);
    assert.strictEqual(result.stdout.length, 200000);
    assert.strictEqual(String(result.stderr), 'e\n');
    const late = child_process.spawnSync('sleep', ['100'], { timeout: 50 });
    assert.strictEqual(late.error.code, 'ETIMEDOUT');
    assert.strictEqual(late.signal, 'SIGTERM');
    assert.strictEqual(String(child_process.execSync('echo hi')), 'hi\n');
    assert.throws(() => child_process.execFileSync('/nonexistent'), { code: 'ENOENT' });
    const big = child_process.spawnSync('yes', [], { maxBuffer: 5000 });
    assert.strictEqual(big.error.code, 'ENOBUFS');
  },

  // Messages, and a listening server sent over the channel.
  async fork_and_handles() {
    const child = child_process.fork(__filename, ['--child']);
    const server = net.createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address();
    child.send('server', server);
    assert.deepStrictEqual((await once(child, 'message'))[0], { listening: true });
    server.close();
    const answer = await gather(net.connect(port, '127.0.0.1'));
    assert.strictEqual(String(answer), `child ${child.pid}`);
    child.send({ big: 'z'.repeat(300000) });
    assert.deepStrictEqual((await once(child, 'message'))[0], { length: 300000 });
    child.disconnect();
    assert.deepStrictEqual(await once(child, 'exit'), [0, null]);
  },

  async cluster() {
    cluster.setupPrimary({ exec: __filename, args: ['--worker'] });
    const workers = [cluster.fork(), cluster.fork()];
    const ports = await Promise.all(workers.map(async (worker) =>
      (await once(worker, 'listening'))[0].port));
    assert.strictEqual(ports[0], ports[1]);
    const pids = new Set();
    for (let n = 0; n < 20; n++) {
      pids.add(String(await gather(net.connect(ports[0], '127.0.0.1'))));
    }
    assert.deepStrictEqual([...pids].sort(), workers.map((w) => `${w.process.pid}`).sort());
    const exits = workers.map((worker) => once(worker, 'exit'));
    cluster.disconnect();
    for (const exit of exits) assert.deepStrictEqual(await exit, [0, null]);
  },

  async worker_threads() {
    const source = `
      const { parentPort, workerData } = require('worker_threads');
      const fs = require('fs');
      let answered = 0;
      parentPort.on('message', (n) => {
        setTimeout(() => fs.readFile('/proc/self/stat', (error, body) => {
          parentPort.postMessage({ n: n * workerData, ok: !error && body.length > 0 });
          if (++answered === 10) parentPort.close();
        }), n);
      });`;
    const workers = Array.from({ length: 6 }, async (_, k) => {
      const worker = new worker_threads.Worker(source, { eval: true, workerData: k });
      const seen = [];
      worker.on('message', (message) => seen.push(message));
      for (let n = 0; n < 10; n++) worker.postMessage(n);
      assert.deepStrictEqual(await once(worker, 'exit'), [0]);
      assert.strictEqual(seen.length, 10);
      assert(seen.every((message) => message.ok));
    });
    await Promise.all(workers);
    const busy = new worker_threads.Worker('for (;;) {}', { eval: true });
    await once(busy, 'online');
    assert.strictEqual(await busy.terminate(), 1);
  },

  async dgram() {
    for (const [type, host] of [['udp4', '127.0.0.1'], ['udp6', '::1']]) {
      const server = dgram.createSocket(type);
      server.on('message', (message, peer) => server.send(message, peer.port, peer.address));
      await once(server.bind(0, host), 'listening');
      const client = dgram.createSocket(type);
      await once(client.bind(0, host), 'listening');
      let seen = 0;
      client.on('message', (message) => { assert.strictEqual(message.length, 1000); seen++; });
      for (let n = 0; n < 50; n++) {
        client.send(Buffer.alloc(1000, `${n}`), server.address().port, host);
        await until(() => seen === n + 1);
      }
      client.close();
      const connected = dgram.createSocket(type);
      connected.connect(server.address().port, host);
      await once(connected, 'connect');
      connected.send('x');
      const [message] = await once(connected, 'message');
      assert.strictEqual(String(message), 'x');
      connected.setRecvBufferSize(50000);
      assert(connected.getRecvBufferSize() >= 50000);
      connected.close();
      server.close();
    }
  },

  async dns_lookup() {
    assert.strictEqual((await dns.promises.lookup('127.0.0.1')).address, '127.0.0.1');
    const all = await dns.promises.lookup('localhost', { all: true });
    assert(all.some(({ address }) => address === '127.0.0.1' || address === '::1'));
    await assert.rejects(dns.promises.lookup('no-such-host.invalid'), (error) =>
      ['ENOTFOUND', 'EAI_AGAIN'].includes(error.code));
    const service = await dns.promises.lookupService('127.0.0.1', 22);
    assert.strictEqual(service.service, 'ssh');
  },

  // c-ares watches its own sockets with uv_poll.
  async dns_resolver() {
    const server = dgram.createSocket('udp4');
    server.on('message', (query, peer) => {
      const answer = Buffer.concat([query.subarray(0, 2), Buffer.from([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]),
        query.subarray(12, query.indexOf(0, 12) + 5),
        Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 20, 30, 40])]);
      server.send(answer, peer.port, peer.address);
    });
    await once(server.bind(0, '127.0.0.1'), 'listening');
    const resolver = new dns.promises.Resolver();
    resolver.setServers([`127.0.0.1:${server.address().port}`]);
    assert.deepStrictEqual(await resolver.resolve4('blacklight.test'), ['10.20.30.40']);
    server.close();
  },

  async fs_watch() {
    const dir = scratch();
    const seen = [];
    const watcher = fs.watch(dir, (event, name) => seen.push(`${event} ${name}`));
    await sleep(20);
    fs.writeFileSync(path.join(dir, 'new'), 'x');
    await until(() => seen.includes('rename new') && seen.includes('change new'));
    fs.renameSync(path.join(dir, 'new'), path.join(dir, 'moved'));
    await until(() => seen.includes('rename moved'));
    watcher.close();
    let times = 0;
    fs.watchFile(path.join(dir, 'moved'), { interval: 20 }, () => times++);
    await sleep(50);
    fs.writeFileSync(path.join(dir, 'moved'), 'longer');
    await until(() => times > 0);
    fs.unwatchFile(path.join(dir, 'moved'));
    fs.rmSync(dir, { recursive: true });
  },

  async signals() {
    const seen = [];
    process.on('SIGUSR2', () => seen.push('USR2'));
    process.on('SIGHUP', () => seen.push('HUP'));
    process.kill(process.pid, 'SIGUSR2');
    await until(() => seen.length === 1);
    process.kill(process.pid, 'SIGHUP');
    await until(() => seen.length === 2);
    assert.deepStrictEqual(seen, ['USR2', 'HUP']);
    process.removeAllListeners('SIGHUP');
    const child = child_process.spawn(process.execPath, ['-e',
      'process.on("SIGTERM", () => { console.log("caught"); process.exit(5); });' +
      'setInterval(() => {}, 1000); console.log("up")']);
    await once(child.stdout, 'data');
    child.kill();
    assert.deepStrictEqual(await once(child, 'exit'), [5, null]);
  },

  // A pipe, a file, /dev/null and a closed descriptor as standard input.
  async stdin() {
    const program = 'let n = 0; process.stdin.on("data", (d) => n += d.length).on("end", () => console.log(n))';
    const run = async (stdin, body) => {
      const child = child_process.spawn(process.execPath, ['-e', program], { stdio: [stdin, 'pipe', 'inherit'] });
      child.stdin?.end(body);
      return String(await gather(child.stdout));
    };
    assert.strictEqual(await run('pipe', Buffer.alloc(500000)), '500000\n');
    assert.strictEqual(await run('ignore'), '0\n');
    const file = fs.openSync(__filename, 'r');
    assert.strictEqual(await run(file), `${fs.statSync(__filename).size}\n`);
    const shell = child_process.spawn('sh', ['-c', `echo hi | "$0" -e '${program}'`, process.execPath]);
    assert.strictEqual(String(await gather(shell.stdout)), '3\n');
    const out = child_process.spawn('sh', ['-c', `"$0" -e 'process.stdout.write("w".repeat(1e6))' | wc -c`, process.execPath]);
    assert.strictEqual(String(await gather(out.stdout)).trim(), '1000000');
  },

  async os() {
    assert(os.cpus().length > 0 && os.cpus()[0].model.length > 0);
    assert(os.totalmem() > os.freemem() && os.freemem() > 0);
    assert(os.uptime() > 0 && os.loadavg().length === 3);
    assert.strictEqual(os.hostname(), String(child_process.execSync('uname -n')).trim());
    assert.strictEqual(os.release(), String(child_process.execSync('uname -r')).trim());
    assert.strictEqual(os.networkInterfaces().lo[0].address, '127.0.0.1');
    assert.strictEqual(os.userInfo().uid, process.getuid());
    assert(process.memoryUsage().rss > 1 << 20);
    assert(process.resourceUsage().maxRSS > 0);
    assert.strictEqual(fs.realpathSync(process.execPath), fs.readlinkSync('/proc/self/exe'));
    process.title = 'lamp';
    assert.strictEqual(process.title, 'lamp');
    assert.strictEqual(fs.readFileSync('/proc/self/comm', 'utf8'), 'lamp\n');
    os.setPriority(os.getPriority());
    assert.throws(() => process.kill(2 ** 22 + 1, 0), { code: 'ESRCH' });
    assert.throws(() => process.chdir('/nonexistent'), { code: 'ENOENT' });
  },

  async crypto_on_the_pool() {
    const crypto = require('crypto');
    const { promisify } = require('util');
    const keys = await Promise.all(Array.from({ length: 12 }, () =>
      promisify(crypto.pbkdf2)('secret', 'salt', 1000, 32, 'sha256')));
    assert.strictEqual(new Set(keys.map(String)).size, 1);
    assert.strictEqual((await promisify(crypto.randomBytes)(64)).length, 64);
  },

  async tls() {
    const tls = require('tls');
    const dir = scratch();
    child_process.execSync('openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=localhost 2>&1',
      { cwd: dir });
    const key = fs.readFileSync(path.join(dir, 'key'));
    const cert = fs.readFileSync(path.join(dir, 'cert'));
    const server = tls.createServer({ key, cert, allowHalfOpen: true }, (socket) => socket.pipe(socket));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const body = Buffer.alloc(1 << 20, 'secret');
    const socket = tls.connect({ port: server.address().port, host: '127.0.0.1', ca: cert,
      servername: 'localhost', allowHalfOpen: true });
    socket.end(body);
    assert((await gather(socket)).equals(body));
    server.close();
    fs.rmSync(dir, { recursive: true });
  },

  // The inspector runs a loop of its own on a thread of its own.
  async inspector() {
    const child = child_process.spawn(process.execPath, ['--inspect=127.0.0.1:0', '-e', 'setInterval(() => {}, 1000)']);
    let said = '';
    child.stderr.on('data', (data) => { said += data; });
    await until(() => /ws:\/\/\S+/.test(said));
    const port = Number(/ws:\/\/127.0.0.1:(\d+)/.exec(said)[1]);
    const body = await new Promise((resolve, reject) => http.get({ port, host: '127.0.0.1', path: '/json/list' },
      (response) => gather(response).then(resolve, reject)).on('error', reject));
    assert.strictEqual(JSON.parse(body)[0].type, 'node');
    child.kill();
    await once(child, 'exit');
  },

  async http2() {
    const http2 = require('http2');
    const server = http2.createServer();
    server.on('stream', (stream, headers) => {
      stream.respond({ ':status': 200 });
      stream.end(`got ${headers[':path']}`);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = http2.connect(`http://127.0.0.1:${server.address().port}`);
    const ask = async (n) => String(await gather(client.request({ ':path': `/${n}` })));
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(n)));
    assert.deepStrictEqual(answers, Array.from({ length: 50 }, (_, n) => `got /${n}`));
    client.close();
    server.close();
    await once(server, 'close');
  },

  // A report walks all handles of the loop and asks each for what it is.
  async process_report() {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const timer = setTimeout(() => {}, 3600e3);
    const watcher = fs.watch(scratch());
    const report = process.report.getReport();
    const kinds = (entries) => entries.map((entry) => entry.type);
    const handles = typeof report === 'string' ? JSON.parse(report).libuv : report.libuv;
    for (const kind of ['tcp', 'timer', 'async', 'fs_event', 'loop']) assert(kinds(handles).includes(kind), kind);
    const tcp = handles.find((entry) => entry.type === 'tcp' && entry.is_active);
    assert.strictEqual(tcp.localEndpoint.port, server.address().port);
    clearTimeout(timer);
    watcher.close();
    server.close();
  },

  // The tracing agent has a thread with a loop of its own and writes its file from there.
  async trace_events() {
    const dir = scratch();
    const program = 'setTimeout(() => require("fs").statSync("/"), 5)';
    const options = ['--trace-event-categories', 'node,v8,node.fs.sync,node.async_hooks', '-e', program];
    const { status } = child_process.spawnSync(process.execPath, options, { cwd: dir });
    assert.strictEqual(status, 0);
    const trace = JSON.parse(fs.readFileSync(path.join(dir, 'node_trace.1.log'), 'utf8'));
    const names = new Set(trace.traceEvents.map((event) => event.name));
    assert(names.has('fs.sync.stat') && names.has('Timeout'), [...names].join(' '));
  },

  async async_hooks() {
    const { AsyncLocalStorage, createHook, executionAsyncId } = require('async_hooks');
    const types = new Map();
    const hook = createHook({ init(id, type) { types.set(id, type); } }).enable();
    const storage = new AsyncLocalStorage();
    const seen = await Promise.all([1, 2, 3].map((n) => storage.run(n, async () => {
      await sleep(n);
      await fs.promises.stat('/');
      await new Promise((resolve) => setImmediate(resolve));
      return storage.getStore();
    })));
    assert.deepStrictEqual(seen, [1, 2, 3]);
    await new Promise((resolve) => fs.stat('/', () => {
      assert.strictEqual(types.get(executionAsyncId()), 'FSREQCALLBACK');
      resolve();
    }));
    hook.disable();
  },

  // Some options have Node copy its own code elsewhere, or run without making any.
  async unusual_options() {
    const program = 'setTimeout(() => require("fs").stat("/", (error) => console.log(error)), 2)';
    for (const option of ['--use-largepages=on', '--jitless', '--frozen-intrinsics', '--expose-internals', '--single-threaded', '--perf-basic-prof']) {
      const options = [option, '-e', program];
      const { status, stdout, stderr } = child_process.spawnSync(process.execPath, options, { cwd: scratch(), encoding: 'utf8' });
      assert.deepStrictEqual([status, stdout], [0, 'null\n'], `${option}: ${stderr}`);
    }
  },

  // Run below terminal.py, which holds the other end of the terminal.
  async tty() {
    assert(process.stdin.isTTY && process.stdout.isTTY);
    assert.deepStrictEqual(process.stdout.getWindowSize(), [120, 40]);
    process.stdin.setRawMode(true);
    process.stdout.write('READY\n');
    const [key] = await once(process.stdin, 'data');
    assert.deepStrictEqual([...key], [3], 'Ctrl-C is a byte in raw mode');
    process.stdin.setRawMode(false);
    process.stdout.write('RESIZE\n');
    await once(process.stdout, 'resize');
    assert.deepStrictEqual(process.stdout.getWindowSize(), [90, 30]);
    process.stdout.write('LINE\n');
    const [line] = await once(process.stdin, 'data');
    assert.strictEqual(String(line), 'a line\n');
    process.stdin.pause();
    process.stdout.write('DONE\n');
  },
};

function child() {
  process.on('message', (message, server) => {
    if (message === 'server') {
      server.on('connection', (socket) => { socket.end(`child ${process.pid}`); server.close(); });
      process.send({ listening: server.listening });
    } else {
      process.send({ length: message.big.length });
    }
  });
}

function worker() {
  net.createServer((socket) => socket.end(`${process.pid}`)).listen(0, '127.0.0.1');
}

if (process.argv[2] === '--child') child();
else if (process.argv[2] === '--worker') worker();
else {
  let over = false;
  process.on('exit', (code) => {
    // A loop that ends with the check unfinished has lost an event.
    if (!over && code === 0) { console.error('the loop ran dry before the check was over'); process.exitCode = 1; }
  });
  checks[process.argv[2]]().then(() => { over = true; }, (error) => { console.error(error); process.exit(1); });
}
