#!/usr/bin/env node
// Starts the blacklight command of the package for this platform. The command's arguments, streams,
// exit status and death by a signal are the caller's; signals that come here go to it.
'use strict';

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const tty = require('tty');

const PACKAGES = { 'linux-x64': '@PLATFORM_PACKAGE@' };
const LINKER = '/lib64/ld-linux-x86-64.so.2';

function fail(reason) {
  process.stderr.write(`blacklight: ${reason}\n`);
  process.exit(1);
}

function find() {
  const platform = `${process.platform}-${process.arch}`;
  const name = PACKAGES[platform];
  if (name === undefined) {
    fail(`there is a build for Linux on x86-64 only, and this is ${platform}`);
  }
  if (!fs.existsSync(LINKER)) {
    fail(`it is made for glibc, whose ${LINKER} is not here`);
  }
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin/blacklight');
  } catch {
    return fail(`the package ${name} is not installed; do not leave out optional dependencies`);
  }
}

// A terminal sends these to all of its foreground processes, the command among them.
function comesFromTerminal(signal) {
  const hasTerminal = [0, 1, 2].some((descriptor) => tty.isatty(descriptor));
  return hasTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT');
}

// For versions of Node that cannot become another program: waits for the command, and ends as it did.
function run(file, args) {
  const child = childProcess.spawn(file, args, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']) {
    // With a listener the signal does not end this process before the command has ended.
    process.on(signal, () => {
      if (!comesFromTerminal(signal)) child.kill(signal);
    });
  }
  child.on('error', (error) => fail(`cannot run ${file}: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // Node is not ended by all of them.
    process.exit(128 + os.constants.signals[signal]);
  });
}

const file = find();
const args = process.argv.slice(2);
if (typeof process.execve === 'function') {
  process.execve(file, [file, ...args]);
} else {
  run(file, args);
}
