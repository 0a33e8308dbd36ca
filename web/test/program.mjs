// A program with mistakes that the page must show: a stalled loop, a starved pool, a leak; and names that look like markup.

import { pbkdf2 } from "node:crypto";
import { createSocket } from "node:dgram";
import { mkdirSync, watch } from "node:fs";
import { fork } from "node:child_process";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MARKUP = "<img src=x onerror=alert(1)>";

function crunchReport() {
  const end = Date.now() + 300;
  let sum = 0;
  while (Date.now() < end) for (let step = 0; step < 1000; step++) sum += Math.sqrt(sum + 1);
  return sum;
}

// A function has the name that its source gives it.
const named = {
  "<img src=x onerror=alert(1)>"() {
    const end = Date.now() + 200;
    let sum = 0;
    while (Date.now() < end) for (let step = 0; step < 1000; step++) sum += Math.sqrt(sum + 1);
    return sum;
  },
};

const sockets = [];
function forgetSocket() {
  sockets.push(createSocket("udp4"));
}

const server = createServer((_, answer) => answer.end("hello")).listen(0, "127.0.0.1");
setInterval(crunchReport, 2000);
setInterval(forgetSocket, 150);
// Each takes a thread of the pool for a while, and there are always more than threads.
const derive = () => pbkdf2("secret", "salt", 400_000, 64, "sha512", derive);
for (let job = 0; job < 12; job++) derive();
const folder = join(tmpdir(), `blacklight-page-${process.pid}-<b>bold<`);
mkdirSync(folder, { recursive: true });
watch(folder);
setInterval(() => named[MARKUP](), 3100);
if (!process.argv.includes("child")) {
  setTimeout(() => {
    const child = fork(new URL("child.mjs", import.meta.url));
    process.on("exit", () => child.kill());
    process.on("SIGTERM", () => process.exit(0));
  }, 1500);
}
process.title = `page-test ${MARKUP}`;
server.unref();
