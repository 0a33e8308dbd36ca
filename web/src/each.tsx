// Handles and requests one by one: a table of any length, of which only what is seen is drawn, with one stop for the Tab key.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { VNode } from "preact";
import { bounded, duration } from "./format";
import { Code, SortHead } from "./parts";

const ROW = 34;
// The rows above and below those in sight that are drawn as well.
const SPARE = 6;

export type By = "kind" | "state" | "what" | "callback" | "maker" | "age" | "number" | "growth";

export interface Row {
  key: string;
  loop: string;
  kind: string;
  state: string;
  what: string;
  callback: string;
  maker: string;
  stack: string[];
  made: number;
  isRequest: boolean;
  // The same with digits filled up, so that numbers stand in their order.
  order?: string;
  // All of it in small letters, once it was searched in.
  text?: string;
}

const inOrder = (text: string) => text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));

// The order of numbers, or of texts by their characters, which many rows can be sorted by in little time.
export function compare(one: number | string, other: number | string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

export interface SortProps {
  sort: { by: By; down: boolean };
  setSort: (sort: { by: By; down: boolean }) => void;
}

export function Each(props: SortProps & { rows: Row[]; now: number; hasMaker: boolean }) {
  const { rows, now, sort, setSort, hasMaker } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(408);
  const [open, setOpen] = useState<string | null>(null);
  // The row that the Tab key leads to, and whether it is to have the focus as soon as it is drawn.
  const [active, setActive] = useState<string | null>(null);
  const wants = useRef(false);
  const detail = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (box.current) setHeight(box.current.clientHeight);
  }, [rows.length === 0]);
  const sorted = useMemo(() => {
    const value = (row: Row): number | string => {
      switch (sort.by) {
        case "age": return row.made;
        case "kind": return row.kind;
        case "state": return row.state;
        case "what": return (row.order ??= inOrder(row.what));
        case "callback": return row.callback;
        default: return row.maker;
      }
    };
    return [...rows].sort((a, b) => {
      const order = compare(value(a), value(b));
      return (sort.down ? -order : order) || compare(a.key, b.key);
    });
  }, [rows, sort]);
  const begin = Math.max(0, Math.min(Math.floor(top / ROW) - SPARE, sorted.length));
  const end = Math.min(sorted.length, Math.ceil((top + height) / ROW) + SPARE);
  const known = useMemo(() => (active === null ? -1 : sorted.findIndex((row) => row.key === active)), [sorted, active]);
  const current = known < 0 ? Math.min(Math.ceil(top / ROW), sorted.length - 1) : known;
  // The row with the focus stays where it is in the table when it is out of sight, so that it keeps the focus.
  const places = Array.from({ length: Math.max(0, end - begin) }, (_, at) => begin + at);
  if (current >= 0 && current < begin) places.unshift(current);
  if (current >= end) places.push(current);
  const head = (by: By, name: string, className?: string) => (
    <SortHead by={by} sort={sort} onSort={setSort} class={className}>{name}</SortHead>
  );
  // What is read about stays though its handle is closed meanwhile.
  const read = useRef<Row | undefined>(undefined);
  const chosen = (read.current = open === null ? undefined : (sorted.find((row) => row.key === open) ?? read.current));
  const focused = () => box.current?.querySelector<HTMLElement>("tbody button[tabindex='0']");
  const focus = () => {
    wants.current = true;
  };
  useLayoutEffect(() => {
    if (!wants.current) return;
    wants.current = false;
    // While rows come and go the table may be too short for it for a moment.
    if (box.current && box.current.scrollTop !== top) box.current.scrollTop = top;
    (open === null ? focused() : detail.current)?.focus({ preventScroll: open === null });
  });
  const close = () => {
    setOpen(null);
    focus();
  };
  // Leads to another row, and brings it into sight.
  const lead = (to: number) => {
    const [element, row] = [box.current, sorted[to]];
    if (!element || !row) return;
    const head = element.querySelector("thead")?.clientHeight ?? 0;
    const [least, most] = [(to + 1) * ROW + head - element.clientHeight, to * ROW];
    element.scrollTop = Math.max(least, Math.min(element.scrollTop, most));
    setTop(element.scrollTop);
    if (to === current) focused()?.focus({ preventScroll: true });
    else focus();
    setActive(row.key);
  };
  const press = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).closest("tbody")) return;
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const last = sorted.length - 1;
    const to = new Map([
      ["ArrowUp", current - 1],
      ["ArrowDown", current + 1],
      ["PageUp", current - page],
      ["PageDown", current + page],
      ["Home", 0],
      ["End", last],
    ]).get(event.key);
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    lead(Math.max(0, Math.min(to, last)));
  };
  const line = (place: number) => {
    const row = sorted[place]!;
    return (
      <tr key={row.key} aria-rowindex={place + 2} class={row.key === open ? "chosen" : ""}>
        <th scope="row">
          <button
            type="button"
            class="quiet"
            tabIndex={place === current ? 0 : -1}
            aria-expanded={row.key === open}
            onFocus={() => setActive(row.key)}
            onClick={() => {
              setActive(row.key);
              setOpen(row.key === open ? null : row.key);
              focus();
            }}
          >
            {row.kind}
          </button>
        </th>
        <td><span class={`state ${row.state.replace(" ", "-")}`}>{row.state}</span></td>
        <td title={bounded(row.what)}>{bounded(row.what)}</td>
        <td class="wide"><Code name={hasMaker ? row.maker : row.callback} /></td>
        <td class="number">{duration(now - row.made)} ago</td>
      </tr>
    );
  };
  const body: VNode[] = [];
  let [next, spaces] = [0, 0];
  const space = (until: number) => {
    if (until > next) body.push(<tr key={`space ${spaces++}`} aria-hidden="true" class="space"><td colSpan={5} style={{ height: `${(until - next) * ROW}px` }} /></tr>);
  };
  for (const place of places) {
    space(place);
    body.push(line(place));
    next = place + 1;
  }
  space(sorted.length);
  return (
    <>
      <div
        class="scroll virtual"
        ref={box}
        role="region"
        onKeyDown={press}
        aria-label="Handles and requests, one in each row. Arrow keys lead from row to row."
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <table class="rows fixed" aria-rowcount={sorted.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {head("kind", "kind", "c-kind")}
              {head("state", "state", "c-state")}
              {head("what", "what", "c-what")}
              {hasMaker ? head("maker", "made by", "c-maker wide") : head("callback", "calls", "c-maker wide")}
              {head("age", "made", "c-age number")}
            </tr>
          </thead>
          <tbody>
            {body}
          </tbody>
        </table>
        {!sorted.length && <p class="empty">No handle or request has the words of the search.</p>}
      </div>
      {chosen && (
        <div
          class="detail"
          ref={detail}
          tabIndex={-1}
          role="group"
          aria-label={`${chosen.kind}, loop ${chosen.loop}`}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation();
            close();
          }}
        >
          <h3>{chosen.kind}, loop {chosen.loop}</h3>
          <dl>
            <dt>state</dt><dd>{chosen.state}</dd>
            {chosen.what && <><dt>what</dt><dd>{bounded(chosen.what)}</dd></>}
            {chosen.callback && <><dt>calls</dt><dd class="symbol">{chosen.callback}</dd></>}
            <dt>made</dt><dd>{duration(now - chosen.made)} ago{chosen.maker && <> by <span class="symbol">{chosen.maker}</span></>}</dd>
          </dl>
          {chosen.stack.length ? (
            <ol class="stack">{chosen.stack.map((frame, place) => <li key={place}><Code name={frame} /></li>)}</ol>
          ) : (
            <p class="note">Where it was made is kept for programs that are started by <code>blacklight live -- PROGRAM</code>.</p>
          )}
          <button type="button" onClick={close}>Close</button>
        </div>
      )}
    </>
  );
}
