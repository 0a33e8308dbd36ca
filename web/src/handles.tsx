// Handles and requests: a table to search and sort, of which only what is seen is drawn.

import { useMemo, useState } from "preact/hooks";
import { Chart } from "./chart";
import { Each, compare, type By, type Row, type SortProps } from "./each";
import type { Documents } from "./documents";
import { clock, count, duration, number } from "./format";
import type { Series } from "./history";
import type { Model } from "./model";
import { Choice, Code, Section, SortHead, WithTable, useSome } from "./parts";

type View = "each" | "kind" | "maker";

// Rows by what they were made from, which is another object as soon as anything of it changes.
const made = new WeakMap<object, Row>();

function textOf(row: Row): string {
  return (row.text ??= [row.kind, row.state, row.what, row.callback, row.maker].join(" ").toLowerCase());
}

interface Group {
  key: string;
  name: string;
  number: number;
  growth: number;
  newest: number;
  maker: string;
}

function rows(shown: [number, Documents][], chosen: string | null): Row[] {
  const found: Row[] = [];
  for (const [pid, documents] of shown) {
    const prefix = shown.length > 1 ? `${pid}/` : "";
    const add = (from: object, row: Row) => {
      made.set(from, row);
      found.push(row);
    };
    for (const [id, handle] of documents.handle) {
      const loop = id.slice(0, id.indexOf("/"));
      if (chosen !== null && chosen !== loop) continue;
      const origin = handle.origin ? documents.origin.get(String(handle.origin)) : undefined;
      const known = made.get(handle);
      if (known && known.maker === (origin?.maker ?? "") && known.loop === prefix + loop) {
        found.push(known);
        continue;
      }
      const parts = [handle.what];
      if (handle.repeat) parts.push(`every ${duration(handle.repeat)}`);
      if (handle.writes) parts.push(`${count(handle.writes, "write")} in progress`);
      add(handle, {
        key: `${pid}/${id}`,
        loop: prefix + loop,
        kind: handle.kind,
        state: handle.state,
        what: parts.filter(Boolean).join(", "),
        callback: handle.callback,
        maker: origin?.maker ?? "",
        stack: origin?.stack ?? [],
        made: handle.made,
        isRequest: false,
      });
    }
    for (const [id, request] of documents.request) {
      const loop = id.slice(0, id.indexOf("/"));
      if (chosen !== null && chosen !== loop) continue;
      add(request, {
        key: `${pid}/request/${id}`,
        loop: prefix + loop,
        kind: `request: ${request.kind}`,
        state: request.thread ? "running" : "waiting",
        what: request.thread ? `in thread ${request.thread}` : "for a thread of the pool",
        callback: "",
        maker: "",
        stack: [],
        made: request.made,
        isRequest: true,
      });
    }
  }
  return found;
}

export function Handles({ model, dark }: { model: Model; dark: boolean }) {
  const [text, setText] = useState("");
  const [chosen, setView] = useState<View | null>(null);
  const [sort, setSort] = useState<{ by: By; down: boolean }>({ by: "growth", down: true });
  const { moment } = model;
  const revision = model.shown.map(([pid, documents]) => `${pid}:${documents.tables}`).join();
  const all = useMemo(() => rows(model.shown, model.loop), [revision, model.loop, model.cursor]);
  const handles = useMemo(() => all.reduce((sum, row) => sum + Number(!row.isRequest), 0), [all]);
  const first = useFirst(model);
  // What grows is seen at once where handles are grouped by the code that makes them.
  const view = chosen ?? (all.some((row) => row.maker) ? "maker" : "kind");
  const choose = (view: View) => {
    setView(view);
    setSort({ by: view === "each" ? "age" : "growth", down: true });
  };
  const words = text.toLowerCase().split(" ").filter(Boolean);
  const found = useMemo(
    () => (words.length ? all.filter((row) => words.every((word) => textOf(row).includes(word))) : all),
    [all, text],
  );
  const grouped = useMemo(() => (view === "each" ? [] : groups(found, view, first.numbers)), [found, view, first]);
  return (
    <Section
      id="handles"
      title="Handles and requests"
      class="handles"
      note={
        // Only what the reader searches for is read out.
        words.length ? (
          <span role="status">{number(found.length)} of {number(all.length)} handles and requests</span>
        ) : (
          <span>{handles === all.length ? count(handles, "handle") : `${count(handles, "handle")} and ${count(all.length - handles, "request")}`}</span>
        )
      }
      tools={
        <>
          <label class="search">
            <span class="hidden">Search handles and requests</span>
            <input
              id="search"
              type="search"
              placeholder="Search: tcp 8080 listening"
              value={text}
              onInput={(event) => {
                setText(event.currentTarget.value);
                if (chosen === null) choose("each");
              }}
            />
            <kbd aria-hidden="true">/</kbd>
          </label>
          <Choice
            label="How handles are listed"
            value={view}
            options={[["each", "each"], ["kind", "by kind"], ["maker", "by where made"]]}
            onChange={choose}
          />
        </>
      }
    >
      <Numbers model={model} dark={dark} />
      {view === "each" ? (
        <Each rows={found} now={moment.at} sort={sort} setSort={setSort} hasMaker={all.some((row) => row.maker)} />
      ) : (
        <Groups groups={grouped} now={moment.at} view={view} sort={sort} setSort={setSort} />
      )}
      <Unlisted model={model} />
      {first.at > 0 && <p class="note">Growth is since {clock(model.history.now.wallOf(first.at), true)}, {model.range ? "the range’s beginning" : "when handles were first seen here"}.</p>}
    </Section>
  );
}

// What the table does not have.
function Unlisted({ model }: { model: Model }) {
  const turns = model.shown.flatMap(([, documents]) =>
    [...documents.turn].filter(([id]) => model.loop === null || model.loop === id).map(([, turn]) => turn),
  );
  const requests = turns.reduce((sum, turn) => sum + (turn.unlisted ?? 0), 0);
  const handles = turns.reduce((sum, turn) => sum + turn.lost, 0);
  return (
    <>
      {requests > 0 && <p class="left">and {count(requests, "more request")}, of which only the number is known</p>}
      {handles > 0 && <p class="left">The record had no room for {count(handles, "handle")}, so this list is not complete.</p>}
    </>
  );
}

// How many handles there were over time.
function Numbers({ model, dark }: { model: Model; dark: boolean }) {
  const { history } = model;
  const lists = model.shown.flatMap(([pid]) => history.series.get(pid) ?? []);
  const longest = lists.reduce<Series | undefined>((most, list) => (list.time.length > (most?.time.length ?? 0) ? list : most), undefined);
  if (!longest) return null;
  const wall = (ns: number) => history.now.wallOf(ns) / 1e3;
  const toNs = (seconds: number) => history.now.at + (seconds * 1e3 - history.now.wall) * 1e6;
  // As many points as can be seen: a leak takes its time.
  const step = Math.max(1, Math.ceil(longest.time.length / 400));
  const time: number[] = [];
  const numbers: (number | null)[] = [];
  for (let at = (longest.time.length - 1) % step; at < longest.time.length; at += step) {
    let sum: number | null = null;
    for (const list of lists) {
      const number = list.handles[at - longest.time.length + list.time.length];
      if (number !== undefined && !Number.isNaN(number)) sum = (sum ?? 0) + number;
    }
    time.push(longest.time[at]!);
    numbers.push(sum);
  }
  const now = numbers[numbers.length - 1];
  return (
    <WithTable
      name="Handles over time"
      picture={
        <Chart
          data={[time, numbers]}
          lines={[{ name: "handles", colour: "--accent", fill: "--accent-fill", width: 1.5 }]}
          height={96}
          span={[time[0] ?? 0, Math.max(time[time.length - 1] ?? 1, (time[0] ?? 0) + 1)]}
          range={model.range ? [wall(model.range[0]), wall(model.range[1])] : null}
          cursor={model.cursor === null ? null : wall(model.cursor)}
          marks={[]}
          scale={(max) => [0, Math.max(4, max * 1.15)]}
          format={number}
          label={`Handles over time. At the end: ${now ?? "unknown"}.`}
          dark={dark}
          onSelect={(from, to) => model.select([Math.max(toNs(from), history.first), Math.min(toNs(to), history.now.at)])}
          onSeek={(at) => {
            model.range = null;
            model.seek(toNs(at));
          }}
        />
      }
      table={() => (
        <table>
          <thead>
            <tr><th scope="col">time</th><th scope="col" class="number">handles</th></tr>
          </thead>
          <tbody>
            {time.map((at, place) => (
              <tr key={at}>
                <th scope="row">{clock(at * 1e3)}</th>
                <td class="number">{numbers[place] ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    />
  );
}

// The numbers by kind and by place at the range's beginning, or else as they were known first, to see what grows.
function useFirst(model: Model): { at: number; numbers: Map<string, number> } {
  const { range, history } = model;
  const pids = model.shown.map(([pid]) => pid);
  const begun = pids.flatMap((pid) => history.begun.get(pid)?.at ?? []);
  return useMemo(() => {
    const at = range ? range[0] : Math.min(...begun, Infinity);
    const past = range ? model.before?.processes : undefined;
    const shown = pids.flatMap((pid): [number, Documents][] => {
      const documents = range ? past?.get(pid) : history.begun.get(pid)?.documents;
      return documents ? [[pid, documents]] : [];
    });
    return { at: Number.isFinite(at) ? at : 0, numbers: numbers(rows(shown, model.loop)) };
  }, [history, pids.join(), model.loop, range?.[0], begun.join()]);
}

function numbers(rows: Row[]): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const row of rows) {
    for (const key of [`kind/${row.kind}`, `maker/${row.kind}/${row.maker}`]) numbers.set(key, (numbers.get(key) ?? 0) + 1);
  }
  return numbers;
}

function groups(rows: Row[], view: View, first: Map<string, number>): Group[] {
  const found = new Map<string, Group>();
  for (const row of rows) {
    const key = view === "kind" ? `kind/${row.kind}` : `maker/${row.kind}/${row.maker}`;
    const group = found.get(key);
    if (group) {
      group.number += 1;
      group.newest = Math.max(group.newest, row.made);
    } else {
      found.set(key, { key, name: row.kind, maker: row.maker, number: 1, newest: row.made, growth: 0 });
    }
  }
  for (const group of found.values()) group.growth = group.number - (first.get(group.key) ?? 0);
  return [...found.values()];
}

function Groups({ groups, now, view, sort, setSort }: SortProps & { groups: Group[]; now: number; view: View }) {
  const head = (by: By, name: string, className?: string) => (
    <SortHead by={by} sort={sort} onSort={setSort} class={className}>{name}</SortHead>
  );
  const value = (group: Group): number | string => {
    switch (sort.by) {
      case "kind": return group.name;
      case "maker": return group.maker;
      case "age": return -group.newest;
      case "number": return group.number;
      default: return group.growth;
    }
  };
  const sorted = [...groups].sort((a, b) => {
    const order = compare(value(a), value(b));
    return sort.down ? -order : order;
  });
  const [some, left] = useSome(sorted, 200);
  const most = Math.max(1, ...groups.map((group) => group.number));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Handles in groups">
      <table class="rows">
        <thead>
          <tr>
            {head("kind", "kind")}
            {view === "maker" && head("maker", "made by")}
            {head("number", "number", "number")}
            <th scope="col" class="wide"><span class="hidden">share</span></th>
            {head("growth", "growth", "number")}
            {head("age", "newest", "number wide")}
          </tr>
        </thead>
        <tbody>
          {some.map((group) => (
            <tr key={group.key}>
              <th scope="row">{group.name}</th>
              {view === "maker" && (
                <td>
                  {group.maker ? <Code name={group.maker} /> : <span class="note">{group.name.startsWith("request") ? "–" : "not known"}</span>}
                </td>
              )}
              <td class="number">{number(group.number)}</td>
              <td class="wide bar">
                <svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="whole" width="100" height="4" />
                  <rect class="part" width={(group.number / most) * 100} height="4" />
                </svg>
              </td>
              <td class={`number ${group.growth > 0 ? "grows" : ""}`}>{group.growth > 0 ? `▲ +${number(group.growth)}` : group.growth < 0 ? `▼ ${group.growth}` : "0"}</td>
              <td class="number wide">{duration(now - group.newest)} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
      {left}
    </div>
  );
}
