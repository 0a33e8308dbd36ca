// The loop as it turns: what a second of it is made of.

import { PHASES, type Documents } from "./documents";
import { duration, number, percent } from "./format";
import { timesAt } from "./history";
import { loopName } from "./loops";
import { Code, Section } from "./parts";
import type { Model } from "./model";

interface Slice {
  name: string;
  colour: string;
  ns: number;
  // Callbacks that ran.
  calls: number | null;
  explains: string;
}

const EXPLAINS: Record<(typeof PHASES)[number], string> = {
  timers: "timers that are due",
  pending: "callbacks that were put off",
  idle: "idle handles, in each turn",
  prepare: "prepare handles, before polling",
  poll: "sockets, pipes, the pool, signals",
  check: "check handles: setImmediate",
  closing: "close callbacks",
};

interface Spent {
  name: string;
  now: Now;
  slices: Slice[];
  whole: number;
  busy: number;
  turns: number;
}

// What the loop does at the moment, and the slice that it belongs to.
interface Now {
  slice: string;
  words: string;
  callback: string;
}

function nowOf(turn: Documents["turn"] extends Map<string, infer T> ? T : never, at: number): Now {
  const took = duration(Math.max(0, at - turn.since));
  switch (turn.state) {
    case "callback": return { slice: turn.phase, words: `${turn.phase}: a ${turn.kind} callback, for ${took}`, callback: turn.callback };
    case "working": return { slice: "loop itself", words: `in its own code, for ${took}`, callback: "" };
    default: return { slice: turn.state, words: `${turn.state}, for ${took}`, callback: "" };
  }
}

// What one loop did between two moments.
function spent(model: Model, pid: number, documents: Documents, id: string): Spent {
  const { moment, before } = model;
  const turn = documents.turn.get(id)!;
  const past = before?.processes.get(pid)?.turn.get(id);
  const isOver = documents.process?.state !== "watched";
  const at = isOver ? turn.since : moment.at;
  const old = past ? timesAt(past, Math.min(before!.at, at)) : [0, 0, 0, 0, 0];
  const times = timesAt(turn, at).map((time, state) => Math.max(0, time - old[state]!));
  const slices: Slice[] = PHASES.map((name, phase) => ({
    name,
    colour: `phase-${phase}`,
    ns: turn.phases[phase]![1] - (past?.phases[phase]?.[1] ?? 0),
    calls: turn.phases[phase]![0] - (past?.phases[phase]?.[0] ?? 0),
    explains: EXPLAINS[name],
  }));
  // A callback that has not returned is in no phase's sum yet.
  const running = times[2]! - slices.reduce((sum, slice) => sum + slice.ns, 0);
  if (running > 1e6) {
    slices.push({ name: "still running", colour: "running", ns: running, calls: null, explains: "callbacks that have not returned" });
  }
  slices.push(
    { name: "loop itself", colour: "working", ns: times[1]!, calls: null, explains: "its own code and system calls" },
    { name: "spinning", colour: "spinning", ns: times[4]!, calls: null, explains: "waits awake for what is about to come" },
    { name: "asleep", colour: "asleep", ns: times[3]!, calls: null, explains: "in the kernel, until there is something" },
    { name: "outside", colour: "outside", ns: times[0]!, calls: null, explains: "its thread is not in a run of the loop" },
  );
  const whole = slices.reduce((sum, slice) => sum + slice.ns, 0);
  const name = loopName(id, documents.loop.get(id)?.name ?? "");
  const idle = times[0]! + times[3]! + times[4]!;
  return { name, now: nowOf(turn, moment.at), slices, whole, busy: percent(whole - idle, whole), turns: turn.turns - (past?.turns ?? 0) };
}

// The loop that is shown, or else the busiest.
function busiest(model: Model): { found: Spent | undefined; loops: number } {
  const all = model.shown.flatMap(([pid, documents]) =>
    [...documents.turn.keys()]
      .filter((id) => model.loop === null || model.loop === id)
      .map((id) => spent(model, pid, documents, id)),
  );
  return { found: all.sort((a, b) => b.busy - a.busy)[0], loops: all.length };
}

const RADIUS = 74;
const ROUND = 2 * Math.PI * RADIUS;

export function Turn({ model }: { model: Model }) {
  const { found: one, loops } = busiest(model);
  if (!one) return null;
  const { slices: found, whole, turns, busy, now } = one;
  const from = model.range?.[0] ?? model.before?.at ?? model.moment.at;
  const span = Math.max(1, model.moment.at - from);
  let offset = 0;
  return (
    <Section id="turn" title="The loop as it turns" class="turn" note={`Where ${model.range ? "the range" : "the last 10 s"} of ${loops > 1 ? `${one.name}, the busiest of ${loops},` : one.name} went.`}>
      <div class="turn-body">
        <svg class="ring" viewBox="0 0 200 200" role="img" aria-label={`Busy ${Math.round(busy)} %. The table has the parts.`}>
          <defs>
            <pattern id="dots" width="5" height="5" patternUnits="userSpaceOnUse">
              <rect class="dots-back" width="5" height="5" />
              <circle class="dots-dot" cx="2.5" cy="2.5" r="1.2" />
            </pattern>
          </defs>
          <circle class="ring-back" cx="100" cy="100" r={RADIUS} />
          {found.map((slice) => {
            const length = whole > 0 ? (slice.ns / whole) * ROUND : 0;
            const begin = offset;
            offset += length;
            if (length < 0.15) return null;
            // What lies side by side is told apart by what lies between, whatever its colours.
            const gap = Math.min(2, length / 3);
            return (
              <circle
                key={slice.name}
                class={`arc ${slice.colour} ${slice.name === now.slice ? "now" : ""}`}
                cx="100"
                cy="100"
                r={RADIUS}
                stroke={slice.colour === "asleep" ? "url(#dots)" : undefined}
                stroke-dasharray={`${Math.max(0.3, length - gap)} ${ROUND}`}
                stroke-dashoffset={-begin}
              />
            );
          })}
          <text x="100" y="98" class="ring-value">{Math.round(busy)} %</text>
          <text x="100" y="118" class="ring-name">busy</text>
          <text x="100" y="136" class="ring-name">{number((turns * 1e9) / span)} turns/s</text>
        </svg>
        <p class="ring-now">
          <strong>{model.isPaused ? "Then" : "Now"}</strong> {now.words}
          <span>{now.callback ? <Code name={now.callback} /> : "\u00a0"}</span>
        </p>
        <table class="parts">
          <thead>
            <tr>
              <th scope="col">part</th>
              <th scope="col" class="number">time</th>
              <th scope="col" class="number">share</th>
              <th scope="col" class="number">calls/s</th>
            </tr>
          </thead>
          <tbody>
            {found.map((slice) => (
              <tr key={slice.name} class={`${slice.ns ? "" : "none"} ${slice.name === now.slice ? "now" : ""}`} title={slice.explains}>
                <th scope="row"><i class={`swatch ${slice.colour}`} aria-hidden="true" />{slice.name}{slice.name === now.slice && <span class="now-mark"> ◂ {model.isPaused ? "then" : "now"}</span>}</th>
                <td class="number">{duration(slice.ns)}</td>
                <td class="number">{percent(slice.ns, whole).toFixed(1)} %</td>
                <td class="number">{slice.calls === null ? "" : number((slice.calls * 1e9) / span)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
