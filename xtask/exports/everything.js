// A program for Node.js that reads files, looks names up, serves and asks over HTTP, and reads files in a worker's loop. It says
// `done`, waits for SIGTERM with all loops open, and prints how much of each it did as a line of JSON. `stall`: the same with a
// request that computes for long, in the function `crunch`, and nothing else.
'use strict';

const crypto = require('crypto');
const dns = require('dns').promises;
const fs = require('fs').promises;
const http = require('http');
const { Worker, isMainThread, parentPort } = require('worker_threads');

const begin = process.hrtime.bigint();
const REQUESTS = 20;
const STATS = 25;
const WORKER_STATS = 10;
const LOOKUPS = 6;
const HASHES = 5;

function crunch(ms) {
  const end = performance.now() + ms;
  let sum = 0;
  while (performance.now() < end) for (let at = 0; at < 1e5; at++) sum += Math.sqrt(at);
  return sum;
}

function get(port) {
  return new Promise((resolve, reject) => {
    const request = http.get({ port, host: '127.0.0.1', agent: false }, (answer) => {
      answer.resume().on('end', resolve);
    });
    request.on('error', reject);
  });
}

function hash() {
  return new Promise((resolve, reject) => {
    crypto.pbkdf2('secret', 'salt', 2000, 32, 'sha256', (error, key) => (error ? reject(error) : resolve(key)));
  });
}

async function serve(answer) {
  const server = http.createServer((request, response) => answer(response));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function stall() {
  const server = await serve((response) => response.end(String(crunch(2000))));
  await get(server.address().port);
  const asked = new Promise((resolve) => process.once('SIGTERM', resolve));
  console.log('done');
  await asked;
  server.close();
}

async function main() {
  const server = await serve((response) => {
    fs.stat(__filename).then((stat) => response.end(String(stat.size)));
  });
  const worker = new Worker(__filename);
  const inWorker = new Promise((resolve) => worker.once('message', resolve));
  const jobs = [];
  for (let at = 0; at < STATS; at++) jobs.push(fs.stat(__filename));
  for (let at = 0; at < LOOKUPS; at++) jobs.push(dns.lookup('localhost'));
  for (let at = 0; at < HASHES; at++) jobs.push(hash());
  await Promise.all(jobs);
  for (let at = 0; at < REQUESTS; at++) await get(server.address().port);
  // A stall of the kind `read`: the request was read in its callback.
  server.once('request', () => crunch(200));
  await get(server.address().port);
  await inWorker;
  const asked = new Promise((resolve) => process.once('SIGTERM', resolve));
  console.log('done');
  await asked;
  worker.postMessage('end');
  server.close();
  console.log(JSON.stringify({
    begin: Number(begin),
    jobs: { fs: STATS + REQUESTS + 1 + WORKER_STATS, getaddrinfo: LOOKUPS, work: HASHES },
    requests: REQUESTS + 1,
  }));
}

async function beWorker() {
  for (let at = 0; at < WORKER_STATS; at++) await fs.stat(__filename);
  parentPort.once('message', () => {});
  parentPort.postMessage('done');
}

const what = isMainThread ? (process.argv[2] === 'stall' ? stall : main) : beWorker;
what().catch((error) => {
  console.error(error);
  process.exit(1);
});
