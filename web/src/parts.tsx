// Small parts that sections are made of.

import { Component, type ComponentChildren, type VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Histogram, Verdict } from "./documents";
import { bounded, duration, number } from "./format";
import { total } from "./history";

// Code as a view names it, `parse (/app/lib/parse.js:12)`: the place is short, and whole where the pointer rests.
export function Code({ name: whole, place }: { name: string; place?: string }) {
  const name = bounded(whole);
  const parts = place === undefined ? /^(.*) \(([^()]+)\)$/.exec(name) : null;
  const [symbol, where] = parts && parts[1] !== "??" ? [parts[1]!, parts[2]!] : [name, place ?? ""];
  const short = where.split("/").slice(-2).join("/");
  return (
    <span class="code" title={where || undefined}>
      <span class="symbol">{symbol}</span>
      {short && <span class="where"> {short}</span>}
    </span>
  );
}

const VERDICTS: Record<Verdict, string> = {
  fine: "M3.2 8.4 6.4 11.5 12.8 4.8",
  notice: "M8 3.6v5.2M8 11.6v.9",
  bad: "M4.4 4.4l7.2 7.2M11.6 4.4l-7.2 7.2",
};

export function VerdictMark({ verdict }: { verdict: Verdict }) {
  return (
    <span class={`verdict ${verdict}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={VERDICTS[verdict]} />
      </svg>
      {verdict}
    </span>
  );
}

// A part of the page that is drawn anew when `on` changes, and not before.
export class Paced extends Component<{ on: unknown; draw: () => ComponentChildren }> {
  override shouldComponentUpdate(next: { on: unknown }): boolean {
    return next.on !== this.props.on;
  }

  render(): ComponentChildren {
    return this.props.draw();
  }
}

export function Section(props: {
  id: string;
  title: string;
  note?: ComponentChildren;
  tools?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section id={props.id} class={`panel ${props.class ?? ""}`} aria-labelledby={`${props.id}-title`} tabIndex={-1}>
      <header class="panel-head">
        <h2 id={`${props.id}-title`}>{props.title}</h2>
        {props.note && <p class="note">{props.note}</p>}
        {props.tools && <div class="tools">{props.tools}</div>}
      </header>
      {props.children}
    </section>
  );
}

// A row of choices of which one holds.
export function Choice<T extends string | number>(props: {
  label: string;
  value: T;
  options: [T, string][];
  onChange: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.options.map(([value, name]) => (
        <button type="button" key={value} aria-pressed={value === props.value} onClick={() => props.onChange(value)}>
          {name}
        </button>
      ))}
    </div>
  );
}

// A picture, and the same as a table.
export function WithTable(props: { name: string; picture: ComponentChildren; table: () => VNode; tools?: ComponentChildren }) {
  const [isTable, setTable] = useState(false);
  return (
    <div class="with-table">
      <div class="with-table-head">
        <h3>{props.name}</h3>
        {props.tools}
        <button type="button" class="quiet" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          Table<span class="hidden"> of {props.name.toLowerCase()}</span>
        </button>
      </div>
      {isTable ? (
        <div class="scroll" tabIndex={0} role="region" aria-label={`${props.name} as a table`}>
          {props.table()}
        </div>
      ) : (
        props.picture
      )}
    </div>
  );
}

// The first of many, and what says how many more there are and shows them.
export function useSome<T>(all: T[], first: number): [T[], VNode | null] {
  const [limit, setLimit] = useState(first);
  const left = all.length - limit;
  if (left <= 0) return [all, null];
  const next = Math.min(left, first * 4);
  return [
    all.slice(0, limit),
    <p class="left">
      and {number(left)} more{" "}
      <button type="button" onClick={() => setLimit(limit + next)}>Show {next === left ? "all" : `${number(next)} of them`}</button>
    </p>,
  ];
}

// The width that an element has.
export function useWidth<T extends HTMLElement>() {
  const ref = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}

// How often durations fell into each power of two, of calls in some time.
export function Bars({ histogram, name, time }: { histogram: Histogram; name: string; time: string }) {
  const all = total(histogram);
  if (!all) return <p class="empty">Of its calls {time} none was seen one by one.</p>;
  const first = histogram.b[0]![0];
  const last = histogram.b[histogram.b.length - 1]![0];
  const counts = new Map(histogram.b);
  const most = Math.max(...counts.values());
  const rows = [];
  for (let bucket = first; bucket <= last; bucket++) {
    const calls = counts.get(bucket) ?? 0;
    const range = bucket === 0 ? "0 ns" : `${duration(2 ** (bucket - 1))} – ${duration(2 ** bucket)}`;
    rows.push(
      <tr key={bucket}>
        <th scope="row">{range}</th>
        <td class="number">{number(calls)}</td>
        <td class="bar">
          <Bar share={calls / most} />
        </td>
      </tr>,
    );
  }
  return (
    <table class="bars">
      <caption>How long {number(all)} calls of {name} took, of those {time}</caption>
      <thead>
        <tr>
          <th scope="col">took</th>
          <th scope="col" class="number">calls</th>
          <th scope="col"><span class="hidden">share</span></th>
        </tr>
      </thead>
      <tbody>{rows}</tbody>
    </table>
  );
}

export function Bar({ share, kind }: { share: number; kind?: string }) {
  return (
    <svg class={`meter ${kind ?? ""}`} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" width="100" height="4" />
      <rect class="part" width={Math.max(0, Math.min(100, share * 100))} height="4" />
    </svg>
  );
}

// A table's head that sorts.
export function SortHead<K extends string>(props: {
  by: K;
  sort: { by: K; down: boolean };
  onSort: (sort: { by: K; down: boolean }) => void;
  children: ComponentChildren;
  class?: string;
  role?: "columnheader";
}) {
  const isSorted = props.sort.by === props.by;
  const order = isSorted ? (props.sort.down ? "descending" : "ascending") : "none";
  return (
    <th scope="col" class={props.class} aria-sort={order}>
      <button
        type="button"
        class="sort"
        onClick={() => props.onSort({ by: props.by, down: isSorted ? !props.sort.down : true })}
      >
        {props.children}
        <span aria-hidden="true" class="arrow">{isSorted ? (props.sort.down ? "↓" : "↑") : ""}</span>
      </button>
    </th>
  );
}
