// Utilization and delay over time.

import { useMemo, useRef } from "preact/hooks";
import { Chart, type Mark } from "./chart";
import type { Texture } from "./colours";
import { clock, duration } from "./format";
import type { LoopSeries, Series } from "./history";
import type { Model } from "./model";
import { Choice, Section, WithTable } from "./parts";

// Callbacks, the loop itself, spinning, outside: what is stacked, as places in the list of states.
const STACK: [number, string, string, Texture][] = [
  [2, "callbacks", "callback", "plain"],
  [1, "the loop itself", "working", "stripes"],
  [4, "spinning", "spinning", "dots"],
  [0, "outside", "outside", "rules"],
];

interface Point {
  time: number;
  // The shares of STACK in percent, or null.
  shares: number[] | null;
  delay: number | null;
}

interface Columns {
  time: number[];
  // Percents, each with those before it below it.
  stacked: (number | null)[][];
  shares: (number | null)[][];
  delay: (number | null)[];
}

interface List {
  pid: number;
  series: Series;
  loops: LoopSeries[];
}

// Where more points than this would be seen, one stands for several.
const SEEN = 700;

// The points that are drawn, each made once: of several frames and many loops it is the busiest loop of the busiest frame, and the longest
// delay of all, since a mean would hide both.
class Points {
  private key = "";
  private history: unknown;
  private made = new Map<number, Point[]>();

  // The points from a wall time on. `key` says of what.
  from(history: unknown, key: string, lists: List[], from: number): Point[] {
    const main = lists[0];
    if (!main) return [];
    const { series } = main;
    let begin = series.time.length;
    while (begin > 0 && series.time[begin - 1]! >= from) begin--;
    const seen = series.time.length - begin;
    // Powers of two, so that a growing time finds most of its points made.
    const step = 2 ** Math.ceil(Math.log2(Math.max(1, seen / SEEN)));
    const whole = `${step} ${main.pid} ${key}`;
    if (this.key !== whole || this.history !== history) {
      this.made.clear();
      [this.key, this.history] = [whole, history];
    }
    const points: Point[] = [];
    const first = Math.floor((series.first + begin) / step);
    const last = Math.floor((series.next - 1) / step);
    for (let place = first; place <= last; place++) {
      const isWhole = (place + 1) * step <= series.next;
      let found = this.made.get(place);
      if (!found) {
        found = pointsOf(lists, place * step, Math.min((place + 1) * step, series.next));
        if (isWhole) this.made.set(place, found);
      }
      points.push(...found);
    }
    for (const place of this.made.keys()) {
      if (place >= first) break;
      this.made.delete(place);
    }
    return points;
  }
}

// What stands for the frames of a main series from one number to another: a point, and one without a value before it where there is a gap.
function pointsOf(lists: List[], begin: number, end: number): Point[] {
  const main = lists[0]!.series;
  let busiest: { loop: LoopSeries; frame: number; time: number } | undefined;
  let busy = -1;
  let delay: number | null = null;
  let gap: Point | undefined;
  for (let frame = Math.max(begin, main.first); frame < end; frame++) {
    const time = main.time[frame - main.first]!;
    let isKnown = false;
    for (const { series, loops } of lists) {
      // All series end with the newest frame.
      const own = frame - main.next + series.next;
      for (const loop of loops) {
        const share = loop.share(own, 2) + loop.share(own, 1);
        if (Number.isNaN(share)) continue;
        isKnown = true;
        if (share > busy) [busiest, busy] = [{ loop, frame: own, time }, share];
        const wait = loop.wait(own);
        if (wait >= 0) delay = Math.max(delay ?? 1e3, wait);
      }
    }
    if (!isKnown) gap = { time, shares: null, delay: null };
  }
  const points = gap ? [gap] : [];
  if (busiest) {
    const { loop, frame, time } = busiest;
    const point = { time, shares: STACK.map(([state]) => loop.share(frame, state)), delay };
    if (gap && gap.time > time) points.unshift(point);
    else points.push(point);
  }
  return points;
}

function columns(points: Point[]): Columns {
  const stacked: (number | null)[][] = STACK.map(() => []);
  const shares: (number | null)[][] = STACK.map(() => []);
  for (const point of points) {
    let below = 0;
    STACK.forEach((_, place) => {
      const share = point.shares?.[place] ?? null;
      shares[place]!.push(share);
      stacked[place]!.push(share === null ? null : (below += share));
    });
  }
  return { time: points.map((point) => point.time), stacked, shares, delay: points.map((point) => point.delay) };
}

export function Timeline({ model, dark, tick }: { model: Model; dark: boolean; tick: number }) {
  const { history, moment, range, cursor } = model;
  const wall = (ns: number) => history.now.wallOf(ns) / 1e3;
  const end = history.now.wall / 1e3;
  const first = history.first ? wall(history.first) : end;
  // A moment that has left the window brings it back.
  const newest = cursor !== null && model.window && wall(cursor) < end - model.window ? wall(cursor) + model.window / 2 : end;
  const span: [number, number] = model.window ? [newest - model.window, newest] : [Math.min(first, end - 1), end];
  const lists = model.shown.map(([pid]) => {
    const series = history.series.get(pid);
    const loops = series ? [...series.loops].filter(([id]) => model.loop === null || model.loop === id) : [];
    return series ? { pid, series, loops: loops.map(([, loop]) => loop) } : undefined;
  });
  const known = lists.filter((list) => list !== undefined).sort((a, b) => b.series.time.length - a.series.time.length);
  const points = useRef(new Points());
  const drawn = useMemo(() => {
    const key = `${known.map((list) => list.pid).join()} ${model.loop ?? ""}`;
    return columns(points.current.from(history, key, known, span[0] - 1));
  }, [tick, model.pid, model.loop, model.window, cursor]);
  const loops = model.shown.reduce((sum, [, documents]) => sum + (model.loop === null ? documents.turn.size : 1), 0);
  const marks: Mark[] = [];
  for (const [, documents] of model.shown) {
    for (const stall of documents.stall.values()) {
      if (model.loop !== null && String(stall.id) !== model.loop) continue;
      marks.push({ from: wall(stall.began), to: wall(stall.began + stall.took) });
    }
  }
  const toNs = (seconds: number) => history.now.at + (seconds * 1e3 - history.now.wall) * 1e6;
  const common = {
    span,
    marks,
    dark,
    range: range ? ([wall(range[0]), wall(range[1])] as const) : null,
    cursor: cursor === null ? null : wall(cursor),
    onSelect: (from: number, to: number) => model.select([Math.max(toNs(from), history.first), Math.min(toNs(to), history.now.at)]),
    onSeek: (at: number) => {
      model.range = null;
      model.seek(toNs(at));
    },
  };
  const last = drawn.time.length - 1;
  const now = STACK.map(([, name], place) => `${name} ${Math.round(drawn.shares[place]![last] ?? 0)} %`).join(", ");
  const seconds = () => {
    const rows: number[] = [];
    for (let at = last; at >= 0 && rows.length < 120; at--) {
      const before = rows[rows.length - 1];
      if (before === undefined || drawn.time[before]! - drawn.time[at]! >= 1) rows.push(at);
    }
    return rows;
  };
  const legend = (
    <ul class="legend" aria-hidden="true">
      {STACK.map(([, name, state, texture]) => (
        <li key={state}><i class={`swatch ${state} ${texture}`} />{name}</li>
      ))}
    </ul>
  );
  return (
    <Section
      id="time"
      title="Over time"
      class="time"
      note="Drag to select, click to go to a moment. Red: stalls."
      tools={
        <Choice
          label="How much is seen"
          value={model.window}
          options={[[30, "30 s"], [60, "1 min"], [300, "5 min"], [0, "all"]]}
          onChange={(window) => {
            model.window = window;
            model.changed();
          }}
        />
      }
    >
      <WithTable
        name={loops > 1 ? `Utilization of the busiest of ${loops} loops` : "Utilization"}
        tools={legend}
        picture={
          <Chart
            {...common}
            label={`Utilization over time. Now: ${now}.`}
            data={[drawn.time, ...[...drawn.stacked].reverse()]}
            lines={[...STACK].reverse().map(([, name, state, texture]) => ({ name, colour: `--${state}`, fill: `--${state}-fill`, texture }))}
            stacked
            height={236}
            scale={() => [0, 100]}
            format={(value) => `${value} %`}
          />
        }
        table={() => (
          <table>
            <thead>
              <tr>
                <th scope="col">time</th>
                {STACK.map(([, name]) => <th scope="col" class="number" key={name}>{name}</th>)}
              </tr>
            </thead>
            <tbody>
              {seconds().map((at) => (
                <tr key={drawn.time[at]}>
                  <th scope="row">{clock(drawn.time[at]! * 1e3)}</th>
                  {drawn.shares.map((share, place) => (
                    <td class="number" key={place}>{share[at] == null ? "–" : `${Math.round(share[at]!)} %`}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      />
      <WithTable
        name={loops > 1 ? `Longest delay of ready callbacks in any of ${loops} loops (p99)` : "Delay of ready callbacks (p99)"}
        picture={
          <Chart
            {...common}
            label={`Delay over time. Now: ${drawn.delay[last] == null ? "unknown" : duration(drawn.delay[last]!)}.`}
            data={[drawn.time, drawn.delay]}
            lines={[{ name: "delay", colour: "--accent", fill: "--accent-fill", width: 1.5 }]}
            height={206}
            logarithmic
            scale={(max) => [1e3, 10 ** Math.max(7, Math.ceil(Math.log10(max || 1)))]}
            format={duration}
          />
        }
        table={() => (
          <table>
            <thead>
              <tr><th scope="col">time</th><th scope="col" class="number">delay, up to</th></tr>
            </thead>
            <tbody>
              {seconds().map((at) => (
                <tr key={drawn.time[at]}>
                  <th scope="row">{clock(drawn.time[at]! * 1e3)}</th>
                  <td class="number">{drawn.delay[at] == null ? "–" : duration(drawn.delay[at]!)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      />
      <Moments model={model} shown={moment.wallOf(cursor ?? moment.at)} />
    </Section>
  );
}

// The same as clicking and dragging, for the keyboard.
function Moments({ model, shown }: { model: Model; shown: number }) {
  const { history, cursor, range } = model;
  const whole = Math.max(1, (history.now.at - history.first) / 1e8);
  const at = ((cursor ?? history.now.at) - history.first) / 1e8;
  return (
    <div class="moments">
      <label>
        <span>Moment</span>
        <input
          type="range"
          min={0}
          max={Math.round(whole)}
          value={Math.round(at)}
          aria-valuetext={clock(shown, true)}
          onInput={(event) => {
            const value = Number(event.currentTarget.value);
            model.range = null;
            model.seek(value >= Math.round(whole) && !model.isPaused ? null : history.first + value * 1e8);
          }}
        />
        <output>{clock(shown, true)}</output>
      </label>
      <div class="tools">
        <button type="button" onClick={() => markStart(model)}>
          Range from {model.start === null ? "here" : clock(model.moment.wallOf(model.start), true)} <kbd>[</kbd>
        </button>
        <button type="button" onClick={() => markEnd(model)}>to here <kbd>]</kbd></button>
        {range && (
          <button type="button" onClick={() => model.select(null)}>
            {duration(range[1] - range[0])} selected: clear
          </button>
        )}
      </div>
    </div>
  );
}

export function markStart(model: Model): void {
  model.start = model.cursor ?? model.history.now.at;
  model.changed();
}

export function markEnd(model: Model): void {
  const at = model.cursor ?? model.history.now.at;
  const from = model.start !== null && model.start < at ? model.start : model.history.first;
  model.start = null;
  model.select([from, at]);
}
