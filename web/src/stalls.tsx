// Callbacks that have kept a loop from its work for too long, with the stacks that were taken meanwhile.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Stall } from "./documents";
import { bounded, duration } from "./format";
import type { Model } from "./model";
import { Choice, Code, Section, useSome } from "./parts";

// The stalls of a process that the server tells of.
const TOLD = 50;

interface Row {
  key: string;
  pid: number;
  stall: Stall;
}

export function Stalls({ model }: { model: Model }) {
  const { moment, range } = model;
  const rows: Row[] = [];
  for (const [pid, documents] of model.shown) {
    for (const [id, stall] of documents.stall) {
      if (model.loop !== null && String(stall.id) !== model.loop) continue;
      if (range && (stall.began > range[1] || stall.began + stall.took < range[0])) continue;
      rows.push({ key: `${pid}/${id}`, pid, stall });
    }
  }
  rows.sort((a, b) => Number(a.stall.over) - Number(b.stall.over) || b.stall.began - a.stall.began);
  const held = useHeld(rows, `${model.root}/${model.pid}/${model.loop}/${range}/${model.cursor}`);
  const longest = Math.max(1, ...rows.map((row) => row.stall.took));
  const [some, left] = useSome(held.rows, 50);
  return (
    <Section id="stalls" title="Stalls" class="stalls" note={range ? "Of the selected range." : "Callbacks that kept the loop from everything else."}>
      {held.more > 0 && (
        <p class="left">
          The list waits while one is open. <button type="button" onClick={held.renew}>Show {held.more} new</button>
        </p>
      )}
      <ul class="stall-list">
        {some.map(({ key, pid, stall }) => (
          <li key={key}>
            <details onToggle={(event) => held.open(key, event.currentTarget.open)}>
              <summary>
                <span class="took">{duration(stall.took)}</span>
                <span class="stall-bar" aria-hidden="true"><i style={{ width: `${(stall.took / longest) * 100}%` }} /></span>
                <span class="what">
                  <Code name={culprit(stall)} />
                  <span class="place">
                    {stall.kind} callback in {stall.phase}, loop {stall.id}
                    {model.shown.length > 1 ? `, process ${pid}` : ""}
                    {stall.doing ? `, ${stall.doing}` : ""}
                  </span>
                </span>
                <span class="when">{stall.over ? `${duration(moment.at - stall.began - stall.took)} ago` : <b>{model.isPaused ? "blocked then" : "blocks now"}</b>}</span>
              </summary>
              <Stacks stall={stall} />
              <button type="button" onClick={() => model.select([stall.began - stall.took * 0.25, stall.began + stall.took * 1.25])}>
                Select its time
              </button>
            </details>
          </li>
        ))}
      </ul>
      {left}
      {model.shown.some(([, documents]) => documents.stall.size >= TOLD) && (
        <p class="left">Of each process the newest {TOLD} are kept. There may have been more before them.</p>
      )}
      {!rows.length && <p class="empty">{range ? "None in the range." : "None so far: no callback took longer than the limit."}</p>}
    </Section>
  );
}

// The rows as they were when the first of them was opened, for as long as one is open: a stack that is read must not move. `scope` says of what
// they are.
function useHeld(rows: Row[], scope: string) {
  const [, draw] = useState(0);
  const opened = useRef(new Set<string>());
  const held = useRef<{ scope: string; rows: Row[] } | undefined>(undefined);
  const now = new Map(rows.map((row) => [row.key, row]));
  // What leaves the list is not open any more.
  const renew = () => {
    for (const key of opened.current) if (!now.has(key)) opened.current.delete(key);
    held.current = undefined;
  };
  if (held.current?.scope !== scope) renew();
  if (!opened.current.size) held.current = undefined;
  else held.current ??= { scope, rows };
  const shown = held.current ? held.current.rows.map((row) => now.get(row.key) ?? row) : rows;
  useEffect(() => {
    // How they are now is what they are when they leave.
    if (held.current) held.current.rows = shown;
  });
  const known = new Set(shown.map((row) => row.key));
  return {
    rows: shown,
    more: rows.reduce((sum, row) => sum + Number(!known.has(row.key)), 0),
    renew: () => {
      renew();
      draw((drawn) => drawn + 1);
    },
    open: (key: string, isOpen: boolean) => {
      if (isOpen) opened.current.add(key);
      else opened.current.delete(key);
      draw((drawn) => drawn + 1);
    },
  };
}

// What its author knows: the innermost code of a script, or else the callback, or else the innermost code.
function culprit(stall: Stall): string {
  const frames = stall.stacks.flatMap((stack) => stack.frames);
  const script = frames.find(([, isScript]) => isScript);
  if (script) return script[0];
  if (stall.name && stall.name !== "unknown code") return stall.name;
  return frames.find(([name]) => !/^<?&?(std|core|alloc)::|^<.* as (std|core|alloc)::|^\?\?/.test(name))?.[0] ?? `a ${stall.kind} callback`;
}

// Why a stall has no stack.
export function withoutStack(stall: Stall): string {
  if (stall.refusal) return `Its stack could not be taken: ${bounded(stall.refusal)}.`;
  return stall.over ? "It was over before its stack could be taken." : "It still runs, and its stack was not taken yet.";
}

function Stacks({ stall }: { stall: Stall }) {
  const [at, setAt] = useState(0);
  const stack = stall.stacks[Math.min(at, stall.stacks.length - 1)];
  if (!stack) return <p class="empty">{withoutStack(stall)}</p>;
  return (
    <>
      {stall.stacks.length > 1 && (
        <Choice
          label="Which stack"
          value={at}
          options={stall.stacks.map((_, place) => [place, `stack ${place + 1}`])}
          onChange={setAt}
        />
      )}
      <p class="note">The thread was {stack.doing}. Innermost first; functions of scripts are marked.</p>
      <ol class="stack">
        {folded(stack.frames).map((group, place) =>
          group.of ? (
            <Folded key={place} frames={group.frames} of={group.of} />
          ) : (
            group.frames.map(([name, isScript], at) => <One key={`${place}/${at}`} name={name} isScript={isScript} />)
          ),
        )}
      </ol>
    </>
  );
}

type Frame = [name: string, isScript: boolean];

// What a script's author has not written, in the order in which it is looked for.
const INSIDES: [RegExp, string][] = [
  [/\bv8::|^Builtins_/, "V8"],
  [/^<?&?(mut )?(std|core|alloc)::|^<.* as (std|core|alloc)::|^__rust_/, "Rust's library"],
];

// The stack with frames in a row put together that lie inside of a library.
function folded(frames: Frame[]): { of: string | null; frames: Frame[] }[] {
  const groups: { of: string | null; frames: Frame[] }[] = [];
  for (const frame of frames) {
    const of = frame[1] ? null : (INSIDES.find(([name]) => name.test(frame[0]))?.[1] ?? null);
    const last = groups[groups.length - 1];
    if (last && last.of === of) last.frames.push(frame);
    else groups.push({ of, frames: [frame] });
  }
  return groups;
}

function Folded({ frames, of }: { frames: Frame[]; of: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <li class="fold">
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> {frames.length === 1 ? "1 frame" : `${frames.length} frames`} inside of {of}
        </button>
      </li>
      {isOpen && frames.map(([name, isScript], at) => <One key={at} name={name} isScript={isScript} />)}
    </>
  );
}

// A frame. What Node.js itself is written in is JavaScript as well, and not the reader's.
function One({ name, isScript }: { name: string; isScript: boolean }) {
  const isNode = /\(node:/.test(name);
  return (
    <li class={isScript && !isNode ? "script" : ""}>
      {(isScript || isNode) && <span class="tag">{/\.py:\d+\)$/.test(name) ? "PY" : "JS"}</span>}
      <Code name={name} />
    </li>
  );
}
