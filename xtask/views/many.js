// A process with two worker threads, and two processes of a cluster.
'use strict';
const cluster = require('cluster');
const { isMainThread, Worker } = require('worker_threads');

if (!isMainThread || !cluster.isPrimary) {
  setInterval(() => {}, 1000);
} else {
  const processes = [cluster.fork(), cluster.fork()];
  const threads = [new Worker(__filename), new Worker(__filename)];
  const online = [...processes, ...threads].map((worker) => new Promise((resolve) => worker.once('online', resolve)));
  Promise.all(online).then(() => console.log('ready', ...processes.map((worker) => worker.process.pid)));
}
