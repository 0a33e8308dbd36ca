// Calls one function of Node over and over: `node calls.js NAME SECONDS`, in an empty directory.
//
// The calls of the first quarter of the time are not counted: they compile the code and start the
// threads. It says "ready" before them. At the end it prints how many calls there were in how many seconds, and the microseconds of
// processor time that this process spent on them.
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

async function callFor(seconds, { step, calls }) {
  const cpu = process.cpuUsage();
  const begun = process.hrtime.bigint();
  const end = begun + BigInt(Math.round(seconds * 1e9));
  let now = begun;
  let done = 0;
  while (now < end) {
    await step();
    done += calls;
    now = process.hrtime.bigint();
  }
  const { user, system } = process.cpuUsage(cpu);
  return { calls: done, seconds: Number(now - begun) / 1e9, cpu_us: user + system };
}

async function main([name, seconds]) {
  const workload = workloads[name]();
  console.log('ready');
  await callFor(Number(seconds) / 4, workload);
  console.log(JSON.stringify(await callFor(Number(seconds), workload)));
}

main(process.argv.slice(2));
