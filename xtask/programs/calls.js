// Calls one function of Node over and over: `node calls.js NAME SECONDS`, in an empty directory.
//
// The calls of the first quarter of the time are not counted: they compile the code and start the
// threads. It says "ready" before them. At the end it prints how many calls there were in how many seconds, the microseconds of
// processor time that this process spent on them, and within how many microseconds half and 99 of 100 steps were done.
'use strict';
const fs = require('node:fs');
const { promisify } = require('node:util');

// Each returns a function that makes one step, and says how many calls a step makes.
const workloads = {
  // 32 files of 4 KiB at once.
  readfile() {
    const names = Array.from({ length: 32 }, (_, n) => `file-${n}`);
    for (const name of names) fs.writeFileSync(name, Buffer.alloc(4096, name));
    const step = () => Promise.all(names.map((name) => fs.promises.readFile(name)));
    return { step, calls: names.length };
  },

  stat() {
    fs.writeFileSync('file', 'x');
    return { step: () => fs.promises.stat('file'), calls: 1 };
  },

  randombytes() {
    const randomBytes = promisify(require('node:crypto').randomBytes);
    return { step: () => randomBytes(16), calls: 1 };
  },

  spawn() {
    const { spawn } = require('node:child_process');
    const step = () => new Promise((resolve, reject) => {
      const child = spawn('/bin/true', { stdio: 'ignore' });
      child.on('error', reject);
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`exit code ${code}`))));
    });
    return { step, calls: 1 };
  },

  lookup() {
    const lookup = promisify(require('node:dns').lookup);
    return { step: () => lookup('localhost'), calls: 1 };
  },
};

// Room for a minute of the fastest.
const MOST_STEPS = 1 << 24;

async function callFor(seconds, { step, calls }) {
  const cpu = process.cpuUsage();
  const begun = process.hrtime.bigint();
  const end = begun + BigInt(Math.round(seconds * 1e9));
  const took = new Float64Array(MOST_STEPS);
  let now = begun;
  let steps = 0;
  while (now < end && steps < MOST_STEPS) {
    const last = now;
    await step();
    now = process.hrtime.bigint();
    took[steps++] = Number(now - last);
  }
  const { user, system } = process.cpuUsage(cpu);
  const sorted = took.subarray(0, steps).sort();
  const within = (share) => sorted[Math.min(steps - 1, Math.floor(steps * share))] / 1e3;
  return {
    calls: steps * calls,
    seconds: Number(now - begun) / 1e9,
    cpu_us: user + system,
    p50_us: within(0.5),
    p99_us: within(0.99),
  };
}

async function main([name, seconds]) {
  const workload = workloads[name]();
  console.log('ready');
  await callFor(Number(seconds) / 4, workload);
  console.log(JSON.stringify(await callFor(Number(seconds), workload)));
}

main(process.argv.slice(2));
