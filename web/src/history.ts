// What the page has been told so far: any moment of it can be brought back.
//
// Frames are kept as text, in chunks that begin with a copy of everything. A moment is the copy of its chunk and
// the frames up to it. The oldest chunks are given up when there is too much.

import { Documents, Moment, STATES, type Frame, type Histogram, type Thread, type Turn } from "./documents";

const CHUNK_FRAMES = 300;
const CHUNK_TEXT = 4_000_000;
const POINTS = 36_000;
// The processes of which nothing is told any more, and whose past can still be seen.
const GONE = 64;
// A pause between two frames that is longer is a gap.
const GAP_NS = 2.5e9;

interface Chunk {
  first: Moment;
  frames: { at: number; text: string }[];
  size: number;
}

// How a loop was in each frame, in few bytes, since there may be many loops and an hour of frames.
export class LoopSeries {
  length = 0;
  // The shares of the states in halves of a percent, those of a frame side by side.
  private shares = new Uint8Array(64 * STATES.length);
  // The longest wait of a ready callback (p99), in nanoseconds.
  private waits = new Float32Array(64);

  // Frames are counted from the first that the page has had; `begin` is the loop's first.
  constructor(private begin: number) {}

  push(frame: number, shares: number[] | undefined, wait: number): void {
    const place = frame - this.begin;
    if (place >= this.waits.length) this.grow(place + 1);
    this.shares.fill(NO_SHARE, this.length * STATES.length, (place + 1) * STATES.length);
    this.waits.fill(NaN, this.length, place + 1);
    shares?.forEach((share, state) => (this.shares[place * STATES.length + state] = Math.round(share * 2)));
    this.waits[place] = wait;
    this.length = place + 1;
  }

  // The share of a state in percent, or NaN.
  share(frame: number, state: number): number {
    const share = this.has(frame) ? this.shares[(frame - this.begin) * STATES.length + state]! : NO_SHARE;
    return share === NO_SHARE ? NaN : share / 2;
  }

  // The longest wait in nanoseconds, or NaN.
  wait(frame: number): number {
    return this.has(frame) ? this.waits[frame - this.begin]! : NaN;
  }

  // Gives up what was before a frame. Returns whether anything is left.
  trim(first: number): boolean {
    const away = Math.min(Math.max(0, first - this.begin), this.length);
    this.shares.copyWithin(0, away * STATES.length, this.length * STATES.length);
    this.waits.copyWithin(0, away, this.length);
    this.begin += away;
    this.length -= away;
    return this.length > 0;
  }

  private has(frame: number): boolean {
    return frame >= this.begin && frame < this.begin + this.length;
  }

  private grow(least: number): void {
    const room = Math.max(least, this.waits.length * 2);
    const [shares, waits] = [new Uint8Array(room * STATES.length), new Float32Array(room)];
    shares.set(this.shares);
    waits.set(this.waits);
    [this.shares, this.waits] = [shares, waits];
  }
}

const NO_SHARE = 255;

// How much of each frame's time a thread of the pool was busy. The time of a request is told with its end, so that what is more than a frame
// has room for belongs to those before it.
export class Lane {
  // Percents of the frames from `begin` on, counted as in a series.
  private shares = new Uint8Array(64);
  private length = 0;
  private busy = 0;
  private tid = 0;

  constructor(private begin: number) {}

  // Takes a thread in a frame. `span` is the time of the frame so many before it, up to its own. A place may have got another thread.
  push(frame: number, thread: Thread, span: (back: number) => number): void {
    const place = frame - this.begin;
    if (place >= this.shares.length) {
      const shares = new Uint8Array(Math.max(place + 1, this.shares.length * 2));
      shares.set(this.shares);
      this.shares = shares;
    }
    this.shares.fill(0, this.length, place + 1);
    this.length = place + 1;
    let left = thread.tid === this.tid ? Math.max(0, thread.busy - this.busy) : 0;
    [this.tid, this.busy] = [thread.tid, thread.busy];
    for (let back = 0; left > 0 && back <= place; back++) {
      const whole = span(back);
      if (!(whole > 0)) break;
      const known = this.shares[place - back]!;
      const taken = Math.min(left, (whole * (100 - known)) / 100);
      this.shares[place - back] = Math.min(100, known + Math.round((taken / whole) * 100));
      left -= taken;
    }
  }

  // The share of a frame in percent.
  share(frame: number): number {
    const place = frame - this.begin;
    return place >= 0 && place < this.length ? this.shares[place]! : 0;
  }

  // Gives up what was before a frame. Returns whether anything is left.
  trim(first: number): boolean {
    const away = Math.min(Math.max(0, first - this.begin), this.length);
    this.shares.copyWithin(0, away, this.length);
    this.begin += away;
    this.length -= away;
    return this.length > 0;
  }
}

// How a process was in each frame. What is not known is NaN.
export class Series {
  // The number of the first frame that is kept.
  first = 0;
  // Wall time in seconds.
  time: number[] = [];
  at: number[] = [];
  queued: number[] = [];
  oldest: number[] = [];
  handles: number[] = [];
  loops = new Map<string, LoopSeries>();
  // The threads of the pool by their places.
  lanes = new Map<string, Lane>();
  last = new Map<string, { at: number; turn: Turn }>();

  // The number of the frame that comes next.
  get next(): number {
    return this.first + this.time.length;
  }
}

export function timesAt(turn: Turn, at: number): number[] {
  const times: number[] = [...turn.time];
  const present = STATES.indexOf(turn.state);
  times[present] = (times[present] ?? 0) + Math.max(0, at - turn.since);
  return times;
}

export function since(later: Histogram, earlier: Histogram | undefined): Histogram {
  if (!earlier) return later;
  const before = new Map(earlier.b);
  const b: [number, number][] = [];
  for (const [bucket, count] of later.b) {
    const more = count - (before.get(bucket) ?? 0);
    if (more > 0) b.push([bucket, more]);
  }
  const highest = b[b.length - 1]?.[0] ?? 0;
  return { b, sum: later.sum - earlier.sum, max: Math.min(2 ** highest, later.max) };
}

// The sum of two histograms.
export function merged(one: Histogram, other: Histogram): Histogram {
  const counts = new Map(one.b);
  for (const [bucket, count] of other.b) counts.set(bucket, (counts.get(bucket) ?? 0) + count);
  return { b: [...counts].sort(([a], [b]) => a - b), sum: one.sum + other.sum, max: Math.max(one.max, other.max) };
}

export function total(histogram: Histogram): number {
  return histogram.b.reduce((sum, [, count]) => sum + count, 0);
}

export function quantile(histogram: Histogram, share: number): number {
  const rank = Math.max(1, Math.ceil(total(histogram) * share));
  let seen = 0;
  for (const [bucket, count] of histogram.b) {
    seen += count;
    if (seen >= rank) return bucket === 0 ? 0 : Math.min(2 ** bucket, histogram.max);
  }
  return 0;
}

export class History {
  now = new Moment();
  series = new Map<number, Series>();
  private chunks: Chunk[] = [];
  private size = 0;
  // The first time of which something is known.
  first = 0;
  private seen = 0;
  frames = 0;
  // A little of each second, for comparisons with a few seconds ago.
  private seconds: Moment[] = [];
  // What was known first of the handles of each process, and when that was: what has grown has grown since then.
  begun = new Map<number, { at: number; documents: Documents }>();

  constructor(public limit: number) {}

  push(text: string): void {
    const frame = JSON.parse(text) as Frame;
    // A stream that was interrupted begins a little before its end.
    if (frame.at <= this.now.at) return;
    const chunk = this.chunks[this.chunks.length - 1];
    this.now.apply(frame);
    this.frames += 1;
    if (!chunk || frame.full || chunk.frames.length >= CHUNK_FRAMES || chunk.size >= CHUNK_TEXT) {
      this.chunks.push({ first: this.now.copy(), frames: [], size: text.length });
    } else {
      chunk.frames.push({ at: frame.at, text });
      chunk.size += text.length;
    }
    this.size += text.length;
    while (this.size > this.limit && this.chunks.length > 1) {
      this.size -= this.chunks.shift()!.size;
    }
    this.sample();
    this.first = Math.max(this.chunks[0]!.first.at, this.seen);
    this.forget();
    this.second();
  }

  // All that was known at a time.
  moment(at: number): Moment {
    if (at >= this.now.at || !this.chunks.length) return this.now;
    let chunk = this.chunks[0]!;
    for (const other of this.chunks) if (other.first.at <= at) chunk = other;
    const moment = chunk.first.copy();
    for (const frame of chunk.frames) {
      if (frame.at > at) break;
      moment.apply(JSON.parse(frame.text) as Frame);
    }
    return moment;
  }

  // What loops and callbacks had cost at about this time, at the latest.
  costs(at: number): Moment | undefined {
    let found: Moment | undefined;
    for (let index = this.seconds.length - 1; index >= 0; index--) {
      found = this.seconds[index]!;
      if (found.at <= at) break;
    }
    return found;
  }

  private second(): void {
    const last = this.seconds[this.seconds.length - 1];
    if (last && this.now.at - last.at < 0.9e9) return;
    const moment = new Moment();
    moment.at = this.now.at;
    moment.wall = this.now.wall;
    for (const [pid, documents] of this.now.processes) {
      const copy = Object.assign(Object.create(Object.getPrototypeOf(documents) as object), documents);
      copy.turn = new Map(documents.turn);
      copy.cost = new Map(documents.cost);
      copy.thread = new Map(documents.thread);
      moment.processes.set(pid, copy);
    }
    this.seconds.push(moment);
    if (this.seconds.length > 30) this.seconds.shift();
  }

  // Gives up the series of processes of which nothing is told any more, when their time is not kept either or there are too many of them.
  private forget(): void {
    for (const pid of this.begun.keys()) if (!this.now.processes.has(pid)) this.begun.delete(pid);
    const gone = [...this.series].filter(([pid]) => !this.now.processes.has(pid));
    gone.sort(([, a], [, b]) => a.at[a.at.length - 1]! - b.at[b.at.length - 1]!);
    gone.forEach(([pid, { at }], place) => {
      if (at[at.length - 1]! < this.first || place < gone.length - GONE) this.series.delete(pid);
    });
  }

  // Adds a point to each series.
  private sample(): void {
    const { now } = this;
    for (const [pid, documents] of now.processes) {
      if (!documents.turn.size && !this.series.has(pid)) continue;
      let series = this.series.get(pid);
      if (!series) this.series.set(pid, (series = new Series()));
      this.seen ||= now.at;
      const frame = series.next;
      const before = series.at[series.at.length - 1];
      const { pool } = documents;
      const isRunning = documents.process?.state === "watched";
      const isGap = before === undefined || now.at - before > GAP_NS || !isRunning;
      series.time.push(now.wall / 1e3);
      series.at.push(now.at);
      series.queued.push(pool && isRunning ? pool.queued.reduce((a, b) => a + b, 0) : NaN);
      series.oldest.push(pool && isRunning ? (pool.oldest ? Math.max(0, now.at - pool.oldest[0]) : 0) : NaN);
      series.handles.push(isRunning ? documents.handle.size : NaN);
      for (const [id, turn] of documents.turn) {
        let loop = series.loops.get(id);
        if (!loop) series.loops.set(id, (loop = new LoopSeries(frame)));
        const last = series.last.get(id);
        const isNew = isGap || !last || now.at <= last.at;
        const waits = isNew ? NaN : quantile(since(turn.delay, last.turn.delay), 0.99);
        loop.push(frame, isNew ? undefined : sharesOf(last, { at: now.at, turn }), waits);
        series.last.set(id, { at: now.at, turn });
      }
      const { at } = series;
      const span = (back: number) => at[frame - series.first - back]! - at[frame - series.first - back - 1]!;
      for (const [place, thread] of documents.thread) {
        let lane = series.lanes.get(place);
        if (!lane) series.lanes.set(place, (lane = new Lane(frame)));
        lane.push(frame, thread, span);
      }
      if (documents.handle.size && !this.begun.has(pid)) {
        const { handle, origin, request } = documents;
        const begun = Object.assign(new Documents(), { handle: new Map(handle), origin: new Map(origin), request: new Map(request) });
        this.begun.set(pid, { at: now.at, documents: begun });
      }
      for (const id of series.last.keys()) if (!documents.turn.has(id)) series.last.delete(id);
      if (series.time.length > POINTS) trim(series);
    }
  }
}

function sharesOf(last: { at: number; turn: Turn }, next: { at: number; turn: Turn }): number[] {
  const before = timesAt(last.turn, last.at);
  const after = timesAt(next.turn, next.at);
  const spent = after.map((time, state) => Math.max(0, time - before[state]!));
  const whole = spent.reduce((sum, time) => sum + time, 0);
  return spent.map((time) => (whole > 0 ? (time / whole) * 100 : 0));
}

// Gives up the oldest part.
function trim(series: Series): void {
  const away = POINTS / 10;
  for (const list of [series.time, series.at, series.queued, series.oldest, series.handles]) list.splice(0, away);
  series.first += away;
  for (const [id, loop] of series.loops) if (!loop.trim(series.first)) series.loops.delete(id);
  for (const [place, lane] of series.lanes) if (!lane.trim(series.first)) series.lanes.delete(place);
}
