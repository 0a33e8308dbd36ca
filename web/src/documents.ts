// What the server tells, as `crates/cli/src/live/document.rs` describes it. Times are nanoseconds of one
// monotonic clock, and counts are since a loop was made.

export type Verdict = "fine" | "notice" | "bad";

export interface Process {
  pid: number;
  parent: number;
  program: string;
  state: "known" | "asked" | "watched" | "ended" | "unreadable";
  note: string;
  ended: number;
  lost: number;
  refused: number;
}

export interface Answer {
  word: string;
  question: string;
  verdict: Verdict;
  sentence: string;
  evidence: string[];
}

export interface Loop {
  id: number;
  name: string;
  poller: string;
  tid: number;
  made: number;
}

export interface Histogram {
  b: [number, number][];
  sum: number;
  max: number;
}

export type State = "outside" | "working" | "callback" | "asleep" | "spinning";

export interface Turn {
  state: State;
  since: number;
  phase: string;
  kind: string;
  callback: string;
  turns: number;
  callbacks: number;
  requests: number;
  active: number;
  // Changes of handles that the record had no room for.
  lost: number;
  // The requests in progress that no document is about.
  unlisted?: number;
  time: [number, number, number, number, number];
  delay: Histogram;
  late: Histogram;
  phases: [number, number][];
}

export interface Cost {
  name: string;
  place: string;
  kind: string;
  count: number;
  total: number;
  longest: number;
  seen: Histogram;
}

export interface Pool {
  threads: number;
  slow: number;
  kinds: string[];
  queued: number[];
  running: number[];
  completed: number[];
  oldest: [number, string] | null;
  wait: Histogram;
}

export interface Thread {
  tid: number;
  running: string;
  // The function of the program's own work that it runs, where it is known.
  work?: string;
  since: number;
  done: number;
  busy: number;
  last: [number, number, string][];
}

export interface Handle {
  kind: string;
  state: string;
  keeps: boolean;
  made: number;
  callback: string;
  due: number;
  repeat: number;
  what: string;
  writes: number;
  queued: number;
  origin: number;
}

export interface Origin {
  maker: string;
  stack: string[];
}

export interface Request {
  kind: string;
  made: number;
  thread: number;
}

export interface Stall {
  id: number;
  phase: string;
  kind: string;
  name: string;
  began: number;
  took: number;
  over: boolean;
  doing: string;
  // Why a stack could not be had, or nothing.
  refusal?: string;
  stacks: { doing: string; frames: [string, boolean][] }[];
}

export interface Frame {
  v: number;
  at: number;
  wall: number;
  full?: boolean;
  set: Record<string, unknown>;
  del: string[];
}

export const STATES: readonly State[] = ["outside", "working", "callback", "asleep", "spinning"];
export const PHASES = ["timers", "pending", "idle", "prepare", "poll", "check", "closing"] as const;

// The documents of one process. The maps' keys are what follows the kind in a document's key.
export class Documents {
  process: Process | undefined;
  answers: Answer[] = [];
  pool: Pool | undefined;
  loop = new Map<string, Loop>();
  turn = new Map<string, Turn>();
  cost = new Map<string, Cost>();
  thread = new Map<string, Thread>();
  handle = new Map<string, Handle>();
  origin = new Map<string, Origin>();
  request = new Map<string, Request>();
  stall = new Map<string, Stall>();
  // Grows whenever a handle, request or origin changes.
  tables = 0;

  copy(): Documents {
    const copy = Object.assign(new Documents(), this);
    for (const kind of MAPS) {
      (copy[kind] as Map<string, unknown>) = new Map(this[kind] as Map<string, unknown>);
    }
    return copy;
  }
}

const MAPS = ["loop", "turn", "cost", "thread", "handle", "origin", "request", "stall"] as const;
type MapKind = (typeof MAPS)[number];
const isMap = (kind: string): kind is MapKind => (MAPS as readonly string[]).includes(kind);

let changes = 0;

// All that is known at one moment.
export class Moment {
  at = 0;
  wall = 0;
  processes = new Map<number, Documents>();

  copy(): Moment {
    const copy = new Moment();
    copy.at = this.at;
    copy.wall = this.wall;
    for (const [pid, documents] of this.processes) copy.processes.set(pid, documents.copy());
    return copy;
  }

  apply(frame: Frame): void {
    this.at = frame.at;
    this.wall = frame.wall;
    if (frame.full) this.processes.clear();
    for (const key of frame.del) this.set(key, undefined);
    for (const key in frame.set) this.set(key, frame.set[key]);
  }

  private set(key: string, value: unknown): void {
    const first = key.indexOf("/");
    const second = key.indexOf("/", first + 1);
    const pid = Number(key.slice(0, first));
    const kind = second < 0 ? key.slice(first + 1) : key.slice(first + 1, second);
    let documents = this.processes.get(pid);
    if (!documents) {
      if (value === undefined) return;
      documents = new Documents();
      this.processes.set(pid, documents);
    }
    if (isMap(kind)) {
      const map = documents[kind] as Map<string, unknown>;
      const id = key.slice(second + 1);
      if (value === undefined) map.delete(id);
      else map.set(id, value);
      if (kind === "handle" || kind === "request" || kind === "origin") documents.tables = ++changes;
    } else if (kind === "answers") {
      documents.answers = (value as Answer[] | undefined) ?? [];
    } else if (kind === "pool") {
      documents.pool = value as Pool | undefined;
    } else if (kind === "process") {
      if (value === undefined) this.processes.delete(pid);
      else documents.process = value as Process;
    }
  }

  // A time of the monotonic clock as one of the calendar, in milliseconds.
  wallOf(ns: number): number {
    return this.wall + (ns - this.at) / 1e6;
  }
}
