// A program with a worker thread, a cluster, and more threads in its pool than have room on the page.

import { execFileSync } from "node:child_process";
import cluster from "node:cluster";
import { open } from "node:fs";
import { join } from "node:path";
import { isMainThread, Worker } from "node:worker_threads";

setInterval(() => {}, 20);
if (isMainThread && cluster.isPrimary) {
  new Worker(new URL(import.meta.url), { name: "sums" });
  for (let worker = 0; worker < 2; worker++) cluster.fork();
  // Nobody ever writes to it, so that each opening takes a thread and no time of the processor.
  const fifo = join(process.argv[2], "fifo");
  execFileSync("mkfifo", [fifo]);
  for (let job = 0; job < 20; job++) open(fifo, "r", () => {});
}
