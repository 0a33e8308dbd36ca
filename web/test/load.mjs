// How the page bears fifty loops and ten thousand handles of a real program, `blacklight live-load`.
//
//   node load.mjs SECONDS [strict]
//
// First the program runs alone, then under the server without a page, and then with one for the given time. After a warm-up, tasks of the
// page's main thread are held against 50 ms, and the memory of page and server in the middle against that at the end.
//
// A machine that is busy with other things takes the processor away from the page in the middle of a task, and makes it slower while it has
// it. So times are only told, unless it is `strict`, which wants a machine to itself. What always counts is how much there is: elements in
// the page, and memory.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { launch, live, open, until } from "./support.mjs";

const seconds = Number(process.argv[2] ?? 60);
const isStrict = process.argv.includes("strict");
const [LOOPS, HANDLES] = [50, 10_000];
const LIMIT_MS = 50;
// The least pictures in a second; a headless browser draws 60 at most.
const LEAST = 45;
// The most that the page may cost the program that it shows, in percents of a processor, over what its record costs.
const MOST = 10;
// The text of frames that the page keeps (`web/src/model.ts`), and the changes that the server does (`crates/cli/src/live/past.rs`).
const KEPT = 64_000_000;
const KEPT_BY_SERVER = 64 << 20;
// The time before the measured one: as long as the page needs to have drawn all of it several times.
const ALONE_MS = Math.min(15_000, seconds * 100);
const WARM_MS = Math.min(30_000, seconds * 200);
const BLACKLIGHT = process.env.BLACKLIGHT;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const mb = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;

// The processor time of a process in milliseconds, from its beginning.
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

// What share of one processor a process takes for some time.
async function share(pid, ms) {
  const [begun, before] = [performance.now(), cpu(pid)];
  await sleep(ms);
  return ((cpu(pid) - before) / (performance.now() - begun)) * 100;
}

function resident(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024;
}

async function alone(ms) {
  const program = spawn(BLACKLIGHT, ["live-load"], { env: { ...process.env, BLACKLIGHT_RECORD: "never" }, stdio: "ignore" });
  const ended = new Promise((resolve) => program.on("exit", resolve));
  await until("the program has its loops", () => Number(/^Threads:\s+(\d+)/m.exec(readFileSync(`/proc/${program.pid}/status`, "utf8"))?.[1]) > LOOPS);
  const spent = await share(program.pid, ms);
  program.kill("SIGKILL");
  await ended;
  return spent;
}

// The tasks of the main threads of all renderers in some time, by process: each with its time on the clock and of the processor, in
// milliseconds, and a long one with what it did.
async function tasks(client, ms) {
  const found = new Map();
  const mains = new Set();
  const parts = [];
  const take = ({ value }) => {
    for (const { name, ts, dur, tdur, tid, pid, args } of value) {
      if (name === "thread_name" && args.name === "CrRendererMain") mains.add(`${pid}/${tid}`);
      const thread = `${pid}/${tid}`;
      if (name !== "RunTask") {
        if (dur > 2_000) parts.push({ thread, name, ts, dur, tdur, args });
        continue;
      }
      if (!found.has(thread)) found.set(thread, []);
      found.get(thread).push({ wall: dur / 1e3, own: (tdur ?? 0) / 1e3, ts, dur });
    }
  };
  client.on("Tracing.dataCollected", take);
  const includedCategories = ["disabled-by-default-devtools.timeline", "devtools.timeline", "v8", "disabled-by-default-v8.gc"];
  await client.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories, excludedCategories: ["*"] } });
  await sleep(ms);
  const complete = new Promise((resolve) => client.once("Tracing.tracingComplete", resolve));
  await client.send("Tracing.end");
  await complete;
  client.off("Tracing.dataCollected", take);
  for (const [thread, some] of found) {
    for (const task of some) {
      if (task.own < LIMIT_MS) continue;
      const within = parts.filter((part) => part.thread === thread && part.ts >= task.ts && part.ts + part.dur <= task.ts + task.dur);
      within.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
      task.did = within.map(({ name, dur, args }) => `${name} ${args.data?.functionName ?? args.data?.type ?? ""} ${(dur / 1e3).toFixed(0)} ms`);
    }
  }
  return [...found].filter(([thread]) => mains.has(thread));
}

const program = { alone: await alone(ALONE_MS) };
const shown = await live("--", BLACKLIGHT, "live-load");
program.recorded = await share(shown.pid, ALONE_MS);

const browser = await launch();
const page = await open(browser, "about:blank");
const client = await page.context().newCDPSession(page);
await client.send("HeapProfiler.enable");
await page.goto(String(shown.url));
await page.locator("#loops tbody tr").nth(LOOPS - 1).waitFor();
await page.getByRole("button", { name: "each", exact: true }).click();
await until("all handles are there", async () => Number(await page.locator("#handles table").getAttribute("aria-rowcount")) >= HANDLES);
await page.getByRole("button", { name: "all", exact: true }).click();
await sleep(WARM_MS);
await page.evaluate(() => {
  window.long = [];
  window.pictures = 0;
  new PerformanceObserver((list) => window.long.push(...list.getEntries().map((task) => task.duration))).observe({ entryTypes: ["longtask"] });
  const draw = () => {
    window.pictures += 1;
    requestAnimationFrame(draw);
  };
  draw();
});

async function memory() {
  await client.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize = 0 } = await client.send("Runtime.getHeapUsage");
  return { heap: usedSize + backingStorageSize, server: resident(shown.server.pid), ...(await page.evaluate(() => ({ frames: window.told, told: window.letters }))) };
}

const system = await browser.newBrowserCDPSession();
const threads = new Map();
const long = [];
let [pictures, watched, pieces, elements] = [0, 0, 0, 0];
// Traces are taken in pieces, since they are kept in memory. The garbage that is collected for `memory` is collected between them.
async function watch(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    // The beginning of the page and its table of handles take turns to be seen, and the table is read somewhere else each time.
    pieces += 1;
    await page.evaluate((piece) => {
      const table = document.querySelector("#handles .virtual");
      if (piece % 2) return scrollTo(0, 0);
      document.querySelector("#handles").scrollIntoView();
      table.scrollTop = (table.scrollHeight * (piece % 7)) / 7;
    }, pieces);
    await page.evaluate(() => ((window.long.length = 0), (window.pictures = 0)));
    const begun = performance.now();
    for (const [thread, some] of await tasks(system, Math.min(10_000, end - performance.now()))) {
      threads.set(thread, [...(threads.get(thread) ?? []), ...some]);
    }
    watched += performance.now() - begun;
    pictures += await page.evaluate(() => window.pictures);
    elements = Math.max(elements, await page.evaluate(() => document.getElementsByTagName("*").length));
    long.push(...(await page.evaluate(() => window.long)));
  }
}

const begun = { program: cpu(shown.pid), server: cpu(shown.server.pid), at: performance.now() };
await watch((seconds * 1000) / 2);
const middle = await memory();
await watch((seconds * 1000) / 2);
const end = await memory();
const passed = performance.now() - begun.at;
const spent = (of, pid) => ((cpu(pid) - of) / passed) * 100;
program.shown = spent(begun.program, shown.pid);
const server = spent(begun.server, shown.server.pid);
const sum = (some) => some.reduce((sum, { own }) => sum + own, 0);
// The page works more than any spare renderer.
const main = [...threads.values()].sort((a, b) => sum(b) - sum(a))[0] ?? [];
const own = main.map((task) => task.own).sort((a, b) => b - a);
const wall = long.sort((a, b) => b - a);
const footer = await page.locator("footer").innerText();

console.log(`machine: ${cpus().length} processors, ${cpus()[0].model}; load ${loadavg()[0].toFixed(1)}`);
console.log(`time: ${(passed / 1000).toFixed(0)} s, after ${WARM_MS / 1000} s of warm-up`);
console.log(`program: ${program.alone.toFixed(1)} % of a processor alone, ${program.recorded.toFixed(1)} % recorded without a page, ${program.shown.toFixed(1)} % with the page`);
console.log(`server: ${server.toFixed(1)} % of a processor; memory ${mb(middle.server)} in the middle, ${mb(end.server)} at the end`);
console.log(`page: main thread ${((sum(main) / watched) * 100).toFixed(0)} % of a processor in ${main.length} tasks, ${((pictures / watched) * 1000).toFixed(0)} pictures/s`);
console.log(`page: longest tasks by processor time ${own.slice(0, 5).map((ms) => ms.toFixed(0)).join(", ")} ms`);
for (const task of main.filter(({ did }) => did)) console.log(`page: ${task.own.toFixed(0)} ms of the processor: ${task.did.join("; ")}`);
console.log(`page: ${wall.length} tasks over ${LIMIT_MS} ms on the clock, the longest ${(wall[0] ?? 0).toFixed(0)} ms`);
console.log(`page: memory ${mb(middle.heap)} in the middle, ${mb(end.heap)} at the end; told ${mb(middle.told)} and ${mb(end.told)}, in ${middle.frames} and ${end.frames} frames`);
console.log(`page: ${elements} elements at most`);
console.log(`page: ${footer}`);

assert.ok(main.length > 0 && pictures > 0, `${main.length} tasks and ${pictures} pictures were seen`);
assert.deepEqual(page.wrong, []);
assert.ok(end.told > middle.told, "the page is told more");
// Only what is seen of the handles is drawn.
assert.ok(elements < HANDLES, `the page has ${elements} elements`);
if (isStrict) {
  const rate = (pictures / watched) * 1000;
  assert.ok(rate >= LEAST, `${rate.toFixed(0)} pictures/s`);
  const cost = program.shown - program.recorded;
  assert.ok(cost <= MOST, `the page costs the program ${cost.toFixed(1)} % of a processor`);
  assert.ok(own[0] < LIMIT_MS, `a task took ${own[0]} ms of the processor`);
  assert.deepEqual(wall, [], "tasks that were too long on the clock");
}
// What the page keeps of the past has a limit, which a short run does not reach: until then it may grow with what it is told. The server
// keeps less of what is older, and takes longer to get there.
const told = end.told - middle.told;
const kept = 3 * (Math.min(end.told, KEPT) - Math.min(middle.told, KEPT));
const isFlat = (from, to, more) => to <= from * 1.1 + 4e6 + more;
assert.ok(isFlat(middle.heap, end.heap, kept), `the page grows from ${mb(middle.heap)} to ${mb(end.heap)}`);
assert.ok(isFlat(middle.server, end.server, Math.min(3 * told, KEPT_BY_SERVER)), `the server grows from ${mb(middle.server)} to ${mb(end.server)}`);

await browser.close();
shown.server.kill("SIGTERM");
assert.equal((await shown.ended).code, 0);
