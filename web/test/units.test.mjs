// Parts of the page alone, without a browser: what it makes of what it is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runnerImport } from "vite";

const load = async (name) => (await runnerImport(new URL(`../src/${name}`, import.meta.url).pathname)).module;
const { History, Lane, merged, total } = await load("history.ts");

const MS = 1e6;

// Frames of a process with one loop, a tenth of a second apart, with what else is set in each.
function told(history, number, set = {}, full = false) {
  const at = number * 100 * MS;
  const turn = { state: "asleep", since: at, time: [0, 0, 0, 0, 0], delay: { b: [], sum: 0, max: 0 }, phases: [] };
  const all = { "7/process": { pid: 7, state: "watched" }, "7/turn/1": turn, ...set };
  history.push(JSON.stringify({ v: number, at, wall: number * 100, ...(full ? { full } : {}), set: all, del: [] }));
}

const thread = (busy, tid = 70) => ({ tid, running: "", since: 0, done: 0, busy, last: [] });
const handle = (kind) => ({ kind, state: "active", keeps: true, made: 1, callback: "", due: 0, repeat: 0, what: "", writes: 0, queued: 0, origin: 0 });

test("a pool that is busy with short requests has full lanes", () => {
  const history = new History(1e9);
  told(history, 1, { "7/thread/0": thread(0) }, true);
  for (let number = 2; number <= 60; number++) told(history, number, { "7/thread/0": thread((number - 1) * 100 * MS) });
  const lane = history.series.get(7).lanes.get("0");
  for (let frame = 1; frame < 60; frame++) assert.equal(lane.share(frame), 100, `frame ${frame}`);
});

test("the time of a long request lies before its end, and never fills a frame twice", () => {
  const lane = new Lane(0);
  const span = () => 100 * MS;
  lane.push(0, thread(0), span);
  for (let frame = 1; frame <= 3; frame++) lane.push(frame, thread(50 * frame * MS), span);
  lane.push(4, thread(150 * MS), span);
  lane.push(5, thread(150 * MS + 250 * MS), span);
  assert.deepEqual([1, 2, 3, 4, 5].map((frame) => lane.share(frame)), [50, 50, 100, 100, 100]);
  // Another thread in its place begins to count anew.
  lane.push(6, thread(900 * MS, 71), span);
  assert.equal(lane.share(6), 0);
  assert.equal(lane.trim(5), true);
  assert.deepEqual([4, 5].map((frame) => lane.share(frame)), [0, 100]);
});

test("histograms are added bucket by bucket", () => {
  const sum = merged({ b: [[3, 1], [9, 2]], sum: 10, max: 300 }, { b: [[4, 5], [9, 1]], sum: 4, max: 400 });
  assert.deepEqual(sum, { b: [[3, 1], [4, 5], [9, 3]], sum: 14, max: 400 });
  assert.equal(total(sum), 9);
});

test("growth is counted from what was known first", () => {
  const history = new History(1e9);
  told(history, 1, {}, true);
  told(history, 2, { "7/handle/1/0": handle("timer") });
  told(history, 3, { "7/handle/1/1": handle("timer") });
  const { at, documents } = history.begun.get(7);
  assert.deepEqual([at, documents.handle.size], [200 * MS, 1]);
});

test("what is gone is forgotten when its time is", () => {
  const history = new History(20_000);
  told(history, 1, {}, true);
  for (let pid = 100; pid < 400; pid++) {
    const turn = { state: "asleep", since: 0, time: [0, 0, 0, 0, 0], delay: { b: [], sum: 0, max: 0 }, phases: [] };
    const number = 2 * pid;
    told(history, number, { [`${pid}/turn/1`]: turn, [`${pid}/handle/1/0`]: handle("timer") });
    history.push(JSON.stringify({ v: number + 1, at: (number + 1) * 100 * MS, wall: 0, set: {}, del: [`${pid}/turn/1`, `${pid}/process`] }));
  }
  assert.ok(history.series.has(7));
  assert.ok(history.series.size <= 65, `${history.series.size} series`);
  assert.deepEqual([...history.begun.keys()], []);
});

test("a lane has room for the name of a function, and not for where it is", async () => {
  const { shortTask } = await load("format.ts");
  assert.equal(shortTask("blacklight::live::demo::export_table (/a/demo.rs:50)"), "export_table");
  assert.equal(shortTask("getaddrinfo"), "getaddrinfo");
  assert.equal(shortTask("node::crypto::Job.run"), "run");
});

test("a stall without a stack says why", async () => {
  const { withoutStack } = await load("stalls.tsx");
  assert.match(withoutStack({ over: true, refusal: "the system forbids it" }), /could not be taken: the system forbids it\.$/);
  assert.match(withoutStack({ over: false, refusal: "" }), /still runs/);
  assert.match(withoutStack({ over: true }), /was over before/);
});

test("code in a sentence is found, and a long text takes no time", async () => {
  const { codeParts } = await load("answers.tsx");
  assert.deepEqual(codeParts("made by forget (a/b.js:12), then"), ["made by ", "forget (a/b.js:12)", ", then"]);
  // A text of this length took half a second when each of its characters was a beginning; now it takes as many steps as it has characters.
  const long = "x".repeat(2_000_000);
  assert.deepEqual(codeParts(long), [long]);
});
