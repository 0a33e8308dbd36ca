#!/usr/bin/env node
// Starts the blacklight command of the package for this platform. The command's arguments, streams,
// exit status and death by a signal are the caller's; signals that come here go to it.
'use strict';

const childProcess = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const tty = require('tty');

// By processor and C library: the package, and the dynamic linker that its files need.
const PACKAGES = @PACKAGES@;

function fail(reason) {
  process.stderr.write(`blacklight: ${reason}\n`);
  process.exit(1);
}

// The C library that this Node is made for, whose dynamic linker is named near the beginning of its file.
function cLibrary() {
  const beginning = Buffer.alloc(4096);
  const file = fs.openSync(process.execPath, 'r');
  fs.readSync(file, beginning, 0, beginning.length, 0);
  fs.closeSync(file);
  return beginning.includes('/ld-musl-') ? 'musl' : 'glibc';
}

function find() {
  const platform = process.platform === 'linux' ? `${process.arch}-${cLibrary()}` : process.platform;
  if (!Object.hasOwnProperty.call(PACKAGES, platform)) {
    fail(`there are builds for Linux on ${Object.keys(PACKAGES).join(', ')}, and this is ${platform}`);
  }
  const { name, linker } = PACKAGES[platform];
  if (!fs.existsSync(linker)) {
    fail(`the package for ${platform} needs ${linker}, which is not here`);
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

// Node ignores this signal, and what it becomes would go on to: a program that writes beyond the
// limit of file sizes would not be ended. Taking a listener away leaves the default.
function stopIgnoring(signal) {
  const nothing = () => {};
  process.on(signal, nothing);
  process.removeListener(signal, nothing);
}

const file = find();
const args = process.argv.slice(2);
if (typeof process.execve === 'function') {
  stopIgnoring('SIGXFSZ');
  process.execve(file, [file, ...args]);
} else {
  run(file, args);
}
