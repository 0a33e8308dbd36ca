// The thread pool: a lane for each thread, and the queue.

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { colour, textured } from "./colours";
import type { Documents, Moment, Thread } from "./documents";
import { count, duration, number, shortTask } from "./format";
import type { Series } from "./history";
import type { Model } from "./model";
import { Section, WithTable, useWidth } from "./parts";

const LANE = 22;
// The threads that get a lane; the table has all.
const LANES = 16;
const SPAN = 6e9;

export function Pool({ model, dark }: { model: Model; dark: boolean }) {
  const shown = model.shown.filter(([, documents]) => documents.pool && documents.pool.threads > 0);
  return (
    <Section id="pool" title="Thread pool" class="pool">
      {shown.map(([pid, documents]) => (
        <OnePool key={pid} pid={pid} model={model} documents={documents} dark={dark} isOne={shown.length === 1} />
      ))}
      {!shown.length && <p class="empty">The thread pool is not in use.</p>}
    </Section>
  );
}

function OnePool(props: { pid: number; model: Model; documents: Documents; dark: boolean; isOne: boolean }) {
  const { pid, model, documents, dark, isOne } = props;
  const { moment } = model;
  const pool = documents.pool!;
  const threads = [...documents.thread].sort(([a], [b]) => Number(a) - Number(b));
  const queue = pool.kinds.flatMap((kind, at) => (pool.queued[at] ? [`${pool.queued[at]} ${kind}`] : []));
  const old = model.before?.processes.get(pid)?.pool;
  const waiting = pool.queued.reduce((a, b) => a + b, 0);
  const age = pool.oldest ? moment.at - pool.oldest[0] : 0;
  const span = Math.max(1, moment.at - (model.before?.at ?? moment.at));
  return (
    <>
      {!isOne && <h3>Process {pid}</h3>}
      <p class="pool-queue">
        <strong class={waiting ? "waits" : ""}>{waiting}</strong> waiting
        {waiting > 0 && <> ({queue.join(", ")}); the oldest, {pool.oldest?.[1]}, for <strong>{duration(age)}</strong></>}
        <span class="note"> · {count(pool.threads, "thread")}; name lookups take at most {pool.slow} at a time</span>
      </p>
      <WithTable
        name="Threads"
        tools={
          <ul class="legend" aria-hidden="true">
            <li><i class="swatch job" />ended</li>
            <li><i class="swatch job-share rules" />busy, in all</li>
            <li><i class="swatch job-open stripes" />runs now</li>
            <li><i class="swatch waits" />waits</li>
          </ul>
        }
        picture={<Lanes pid={pid} model={model} moment={moment} documents={documents} dark={dark} />}
        table={() => (
          <>
          <table>
            <thead>
              <tr>
                <th scope="col">thread</th>
                <th scope="col">runs</th>
                <th scope="col" class="number">for</th>
                <th scope="col" class="number">ended</th>
                <th scope="col" class="number">busy</th>
                <th scope="col" class="number">of the last 6 s</th>
                <th scope="col">ended in the last 6 s, of at least 5 ms</th>
              </tr>
            </thead>
            <tbody>
              {threads.map(([place, thread]) => (
                <tr key={place}>
                  <th scope="row">{thread.tid}</th>
                  <td>{task(thread) || "idle"}</td>
                  <td class="number">{duration(moment.at - thread.since)}</td>
                  <td class="number">{number(thread.done)}</td>
                  <td class="number">{duration(thread.busy)}</td>
                  <td class="number">{Math.round(busyShare(model.history.series.get(pid), place, thread, moment.at))} %</td>
                  <td>{lately(thread, moment.at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <Queue series={model.history.series.get(pid)} moment={moment} />
          </>
        )}
      />
      <table class="rows kinds">
        <thead>
          <tr>
            <th scope="col">kind</th>
            <th scope="col" class="number">wait</th>
            <th scope="col" class="number">run</th>
            <th scope="col" class="number">ended/s</th>
            <th scope="col" class="number">ended</th>
          </tr>
        </thead>
        <tbody>
          {pool.kinds.map((kind, at) =>
            pool.completed[at] || pool.queued[at] || pool.running[at] ? (
              <tr key={kind}>
                <th scope="row">{kind}</th>
                <td class="number">{pool.queued[at]}</td>
                <td class="number">{pool.running[at]}</td>
                <td class="number">{old ? number(((pool.completed[at]! - old.completed[at]!) * 1e9) / span) : "–"}</td>
                <td class="number">{number(pool.completed[at]!)}</td>
              </tr>
            ) : null,
          )}
        </tbody>
      </table>
    </>
  );
}

// What a thread runs: the function, where a stack has told it, or else the kind.
function task(thread: Thread): string {
  return thread.running && (thread.work || thread.running);
}

// What share of the last seconds a thread was busy, in percent.
function busyShare(series: Series | undefined, place: string, thread: Thread, now: number): number {
  const lane = series?.lanes.get(place);
  // What runs now is not in the sum of what has ended.
  const since = thread.running ? Math.max(thread.since, now - SPAN) : now;
  let busy = now - since;
  for (let at = (series?.at.length ?? 0) - 1; lane && series && at > 0 && series.at[at]! > now - SPAN; at--) {
    const [from, to] = [series.at[at - 1]!, Math.min(series.at[at]!, since)];
    if (to > from) busy += ((to - from) * lane.share(series.first + at)) / 100;
  }
  return Math.min(100, (busy / SPAN) * 100);
}

// The requests of a lane in words, the newest first.
function lately(thread: Thread, now: number): string {
  const seen = thread.last.filter(([at, took]) => at + took > now - SPAN).reverse();
  return seen.map(([at, took, kind]) => `${kind} for ${duration(took)}, ${duration(now - at - took)} ago`).join("; ") || "–";
}

// What waited in the last seconds, every half second.
function Queue({ series, moment }: { series: Series | undefined; moment: Moment }) {
  const rows: VNode[] = [];
  let next = moment.at;
  for (let at = (series?.at.length ?? 0) - 1; series && at >= 0 && series.at[at]! > moment.at - SPAN; at--) {
    if (series.at[at]! > next) continue;
    next = series.at[at]! - 0.5e9;
    const [queued, oldest] = [series.queued[at]!, series.oldest[at]!];
    rows.push(
      <tr key={at}>
        <th scope="row">{duration(moment.at - series.at[at]!)} ago</th>
        <td class="number">{Number.isNaN(queued) ? "–" : number(queued)}</td>
        <td class="number">{Number.isNaN(oldest) ? "–" : duration(oldest)}</td>
      </tr>,
    );
  }
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">when</th>
          <th scope="col" class="number">waited</th>
          <th scope="col" class="number">the oldest for</th>
        </tr>
      </thead>
      <tbody>{rows}</tbody>
    </table>
  );
}

// What each thread ran in the last seconds. The newest long requests are blocks with their names; below them is the share of the time in
// which the thread was busy, with short requests and with those of which nothing more is told.
function Lanes(props: { pid: number; model: Model; moment: Moment; documents: Documents; dark: boolean }) {
  const { moment, documents, model, pid } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const all = [...documents.thread].sort(([a], [b]) => Number(a) - Number(b));
  const threads = all.slice(0, LANES);
  const height = (threads.length + 2) * LANE + 20;
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || !width) return;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    const [from, to] = [moment.at - SPAN, moment.at];
    const left = 64;
    const x = (at: number) => left + ((Math.min(Math.max(at, from), to) - from) / SPAN) * (width - left);
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const block = (at: number, until: number, y: number, name: string, isOpen: boolean) => {
      const [begin, end] = [x(at), x(until)];
      ctx.fillStyle = colour("--lane");
      ctx.fillRect(begin, y + 3, end - begin, LANE - 7);
      ctx.fillStyle = isOpen ? textured("--job-open", "stripes", "--job-stripe") : colour("--job");
      ctx.fillRect(begin, y + 3, Math.max(1.5, end - begin - 1), LANE - 7);
      // As much of it as has room. A kind is that of many others, and says less than how long it took; the name of a function says more.
      const kind = shortTask(name);
      const took = duration(until - at);
      const words = [`${isOpen ? "▸ " : ""}${kind} ${took}`, ...(kind === name ? [took, kind] : [kind, took])];
      const fits = words.find((text) => ctx.measureText(text).width < end - begin - 9);
      if (fits) {
        ctx.fillStyle = colour("--job-ink");
        ctx.fillText(fits, begin + 5, y + LANE / 2 - 0.5);
      }
    };
    const series = model.history.series.get(pid);
    threads.forEach(([place, thread], row) => {
      const y = row * LANE;
      ctx.fillStyle = colour("--quiet");
      ctx.fillText(String(thread.tid), 0, y + LANE / 2);
      ctx.fillStyle = colour("--lane");
      ctx.fillRect(left, y + 3, width - left, LANE - 7);
      const lane = series?.lanes.get(place);
      ctx.fillStyle = textured("--job-share", "rules", "--lane");
      for (let at = (series?.at.length ?? 0) - 1; lane && series && at > 0 && series.at[at]! > from; at--) {
        const part = (lane.share(series.first + at) / 100) * (LANE - 7);
        if (!part || series.at[at - 1]! > to) continue;
        const [begin, end] = [x(series.at[at - 1]!), x(series.at[at]!)];
        ctx.fillRect(begin, y + LANE - 4 - Math.max(1, part), end - begin, Math.max(1, part));
      }
      for (const [at, took, kind] of thread.last) if (at + took > from) block(at, at + took, y, kind, false);
      if (thread.running) block(thread.since, to, y, task(thread), true);
    });
    const area = (row: number, name: string, values: number[], least: number, format: (value: number) => string) => {
      const y = row * LANE;
      ctx.fillStyle = colour("--quiet");
      ctx.fillText(name, 0, y + LANE / 2);
      ctx.fillStyle = colour("--lane");
      ctx.fillRect(left, y + 3, width - left, LANE - 4);
      if (!series) return;
      let most = least;
      for (let at = series.at.length - 1; at >= 0 && series.at[at]! >= from; at--) most = Math.max(most, values[at] || 0);
      ctx.fillStyle = colour("--waits");
      for (let at = series.at.length - 1; at > 0 && series.at[at]! >= from; at--) {
        const [begin, end] = [x(series.at[at - 1]!), x(series.at[at]!)];
        if (series.at[at - 1]! > to) continue;
        const part = ((values[at] || 0) / most) * (LANE - 4);
        ctx.fillRect(begin, y + LANE - 1 - part, Math.max(1, end - begin), part);
      }
      const text = `up to ${format(most)}`;
      const wide = ctx.measureText(text).width;
      ctx.fillStyle = colour("--panel");
      ctx.fillRect(left, y + 3, wide + 10, LANE - 4);
      ctx.fillStyle = colour("--quiet");
      ctx.fillText(text, left + 3, y + LANE / 2 + 1);
    };
    // The queue, as long and as old as it was.
    area(threads.length, "waiting", series?.queued ?? [], 4, String);
    area(threads.length + 1, "oldest", series?.oldest ?? [], 1e6, duration);
    ctx.fillStyle = colour("--quiet");
    ctx.fillText("6 s ago", left, height - 8);
    ctx.textAlign = "right";
    ctx.fillText("now", width, height - 8);
  }, [moment.at, width, props.dark, documents]);
  const label = threads.map(([, thread]) => `${thread.tid}: ${task(thread) || "idle"}`).join(", ");
  return (
    <>
      <div class="lanes" ref={box} role="img" aria-label={`Threads of the pool. ${label}.`} style={{ height: `${height}px` }}>
        <canvas ref={canvas} />
      </div>
      {all.length > LANES && <p class="left">and {all.length - LANES} more threads, which the table has</p>}
    </>
  );
}
