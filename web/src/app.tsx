// The page: what is shown of which processes, and at which moment.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Answers } from "./answers";
import { Callbacks } from "./callbacks";
import { clock, duration, isDemo, program } from "./format";
import { Handles } from "./handles";
import { loopName, Loops } from "./loops";
import type { Model } from "./model";
import { Paced } from "./parts";
import { Pool } from "./pool";
import { Stalls } from "./stalls";
import { markEnd, markStart, Timeline } from "./timeline";
import { Turn } from "./turn";

const SECTIONS: [string, string][] = [
  ["answers", "Answers"],
  ["time", "Time"],
  ["turn", "Turn"],
  ["callbacks", "Callbacks"],
  ["pool", "Pool"],
  ["stalls", "Stalls"],
  ["handles", "Handles"],
];

// The keys that are characters, which can be turned off: who speaks to their machine, or rests a hand on it, types them unawares.
const CHARACTERS = "[]/ce?1234567";
const SETTING = "blacklight-keys";

const KEYS: [string, string][] = [
  ["space", "pause, or go on"],
  ["← →", "go to another moment: a tenth of a second; with Shift, a second"],
  ["[ ]", "begin and end a range at the moment"],
  ["Esc", "back to now"],
  ["1 – 7", "go to a section"],
  ["↑ ↓", "another row in the list of handles, also Home, End, Page Up and Page Down; Enter opens it, Esc leads back"],
  ["/", "search handles and requests"],
  ["c", "copy a link to the moment"],
  ["e", "export the range as a trace for Perfetto"],
  ["?", "this help"],
];

function useDark(): boolean {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return dark;
}

function useTick(model: Model): number {
  const [tick, setTick] = useState(0);
  useEffect(() => model.subscribe(() => setTick((tick) => tick + 1)), [model]);
  return tick;
}

export function App({ model }: { model: Model }) {
  const tick = useTick(model);
  const dark = useDark();
  const help = useRef<HTMLDialogElement>(null);
  const [said, setSaid] = useState("");
  const say = (text: string) => {
    setSaid(text);
    setTimeout(() => setSaid((old) => (old === text ? "" : old)), 6000);
  };
  const copy = () => {
    const link = model.link();
    history.replaceState(null, "", link);
    const written = navigator.clipboard?.writeText(link) ?? Promise.reject();
    written.then(
      () => say("The link to this moment is copied. It works while blacklight live runs and keeps that time."),
      () => say("The link to this moment is in the address. It works while blacklight live runs and keeps that time."),
    );
  };
  const isSaving = useRef(false);
  const save = () => {
    if (isSaving.current) return;
    isSaving.current = true;
    void exportTrace(model, say).finally(() => (isSaving.current = false));
  };
  const [hasKeys, setKeys] = useState(() => remembered() !== "off");
  useKeys(model, { help: () => help.current?.showModal(), copy, save, hasKeys });
  const { pace } = model;
  const isKnown = model.shown.length > 0;
  useEffect(() => {
    const section = SECTIONS.find(([id]) => id === model.section);
    if (isKnown && section) goTo(undefined, section[0]);
    if (isKnown) model.section = null;
  }, [isKnown, model.section]);
  const isChoosing = model.root === null && !model.isRecording;
  return (
    <>
      <a class="skip" href="#answers" onClick={(event) => goTo(event, "answers")}>Skip to the answers</a>
      <Paced on={pace} draw={() => <Header model={model} onCopy={copy} onSave={save} onHelp={() => help.current?.showModal()} />} />
      <main>
        <Banner model={model} />
        <p class="said" role="status">{said}</p>
        {isChoosing ? (
          <Processes model={model} />
        ) : !isKnown ? (
          <Waiting model={model} />
        ) : (
          <>
            <Tour model={model} />
            <Paced on={pace} draw={() => <Answers shown={model.shown} />} />
            <div class="columns">
              <Timeline model={model} dark={dark} tick={tick} />
              <Paced on={pace} draw={() => <Turn model={model} />} />
            </div>
            <Paced on={pace} draw={() => <Loops model={model} />} />
            <div class="columns">
              <Paced on={pace} draw={() => <Callbacks model={model} />} />
              <Pool model={model} dark={dark} />
            </div>
            <Paced on={pace} draw={() => <Stalls model={model} />} />
            <Paced on={pace} draw={() => <Handles model={model} dark={dark} />} />
          </>
        )}
      </main>
      <Footer model={model} />
      <dialog ref={help} aria-labelledby="help-title" class="help">
        <h2 id="help-title">Keys</h2>
        <dl>
          {KEYS.map(([key, does]) => (
            <div key={key}>
              <dt><kbd>{key}</kbd></dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <label class="setting">
          <input
            type="checkbox"
            checked={hasKeys}
            onChange={(event) => {
              const isOn = event.currentTarget.checked;
              setKeys(isOn);
              remember(isOn ? "on" : "off");
            }}
          />
          Keys that are letters, digits and signs work
        </label>
        <form method="dialog"><button type="submit" onClick={(event) => (event.preventDefault(), help.current?.close())}>Close</button></form>
      </dialog>
    </>
  );
}

// What the browser remembers of the keys, if it remembers anything.
function remembered(): string | null {
  try {
    return localStorage.getItem(SETTING);
  } catch {
    return null;
  }
}

function remember(setting: string): void {
  try {
    localStorage.setItem(SETTING, setting);
  } catch {
    // It holds until the page is left.
  }
}

// What there is to find in the program of the demo.
function Tour({ model }: { model: Model }) {
  const [isOver, setOver] = useState(false);
  const root = model.root === null ? undefined : model.moment.processes.get(model.root);
  if (isOver || !isDemo(root?.process?.program ?? "")) return null;
  const to = (id: string, name: string) => <a href={model.sectionLink(id)} onClick={(event) => goTo(event, id)}>{name}</a>;
  return (
    <p class="tour">
      <span>
        Three things are wrong with this program: a report blocks its loop <em>web</em> every few seconds ({to("stalls", "Stalls")}), exports
        take all threads of its pool ({to("pool", "Pool")}), and a timer is left behind for each client that is gone ({to("handles", "Handles")}).
      </span>
      <button type="button" onClick={() => setOver(true)}>Got it</button>
    </p>
  );
}

function goTo(event: Event | undefined, id: string): void {
  event?.preventDefault();
  const section = document.getElementById(id);
  if (!section) return;
  section.focus({ preventScroll: true });
  section.scrollIntoView();
  // What was out of sight has its size only once it is drawn.
  requestAnimationFrame(() => requestAnimationFrame(() => section.scrollIntoView()));
}

function useKeys(model: Model, does: { help: () => void; copy: () => void; save: () => void; hasKeys: boolean }): void {
  const current = useRef(does);
  current.current = does;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const target = event.target as HTMLElement;
      const isTyping = target.matches("input, select, textarea");
      const isPressing = target.matches("button, summary, a");
      if (isTyping) {
        if (event.key === "Escape") target.blur();
        return;
      }
      if (CHARACTERS.includes(event.key) && (event.repeat || !current.current.hasKeys)) return;
      const step = event.shiftKey ? 1e9 : 1e8;
      const at = model.cursor ?? model.history.now.at;
      const move = (by: number) => {
        model.range = null;
        model.seek(at + by);
      };
      switch (event.key) {
        case " ":
          if (isPressing || event.repeat) return;
          model.pause();
          break;
        case "ArrowLeft":
          if (target.closest(".scroll")) return;
          move(-step);
          break;
        case "ArrowRight":
          if (target.closest(".scroll")) return;
          move(step);
          break;
        case "[":
          markStart(model);
          break;
        case "]":
          markEnd(model);
          break;
        case "Escape":
          model.start = null;
          model.seek(null);
          break;
        case "/":
          document.getElementById("search")?.focus();
          break;
        case "c":
          current.current.copy();
          break;
        case "e":
          current.current.save();
          break;
        case "?":
          current.current.help();
          break;
        default: {
          const section = SECTIONS[Number(event.key) - 1];
          if (!section) return;
          goTo(event, section[0]);
        }
      }
      event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [model]);
}

// The process that a trace is made of: the chosen one, or the first that is watched. What was started may be a shell without a loop.
function exported(model: Model): number | undefined {
  if (model.pid !== null) return model.pid;
  const watched = model.shown.filter(([, { process, turn }]) => process?.state === "watched" && turn.size > 0).map(([pid]) => pid);
  return watched.find((pid) => pid === model.root) ?? watched[0];
}

async function exportTrace(model: Model, say: (text: string) => void): Promise<void> {
  if (model.isRecording) return say("A recording has no single events to make a trace of.");
  const pid = exported(model);
  if (pid === undefined) return say("There is no trace: no process is watched.");
  const to = model.range?.[1] ?? model.moment.at;
  const from = model.range?.[0] ?? to - 10e9;
  say("Making the trace …");
  const query = new URLSearchParams({ pid: String(pid), from: String(Math.max(0, Math.round(from))), to: String(Math.round(to)) });
  try {
    const answer = await fetch(`trace?${query}`);
    if (!answer.ok) return say(`There is no trace: ${await answer.text()}.`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = `blacklight-${pid}.pftrace`;
    link.click();
    URL.revokeObjectURL(link.href);
    const [begin, end] = (answer.headers.get("blacklight-range") ?? `${from} ${to}`).split(" ").map(Number);
    const took = end! - begin!;
    const isWhole = took > (to - from) * 0.95;
    say(`A trace of ${duration(took)} of process ${pid} was saved${isWhole ? "" : `, as no more of the ${duration(to - from)} is kept`}. Open it in Perfetto.`);
  } catch {
    say("There is no trace: the server does not answer.");
  }
}

function Header({ model, onCopy, onSave, onHelp }: { model: Model; onCopy: () => void; onSave: () => void; onHelp: () => void }) {
  const { moment } = model;
  const isShown = model.shown.length > 0 || model.pid !== null;
  const processes = [...moment.processes].filter(([pid, documents]) => documents.turn.size || pid === model.root);
  const loops = processes
    .filter(([pid]) => model.pid === null ? processes.length === 1 : pid === model.pid)
    .flatMap(([, documents]) => [...documents.loop]);
  return (
    <header class="top">
      <h1>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path class="beam" d="M16 11 4 29h24z" />
          <path class="lamp" d="M9 4h14a2 2 0 0 1 2 2v3a2 2 0 0 1-2 2H9a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2z" />
        </svg>
        <span>Blacklight</span>
      </h1>
      {isShown && (
        <div class="scope">
          <label>
            <span class="hidden">Process</span>
            <select
              value={model.pid === null ? "" : String(model.pid)}
              onChange={(event) => model.choose(event.currentTarget.value ? Number(event.currentTarget.value) : null, null)}
            >
              {(processes.length !== 1 || model.pid !== null) && <option value="">all {processes.length} processes</option>}
              {processes.map(([pid, documents]) => (
                <option key={pid} value={processes.length === 1 && model.pid === null ? "" : String(pid)}>
                  {program(documents.process?.program ?? "process")} · {pid}{documents.process?.state === "ended" ? " · ended" : ""}
                </option>
              ))}
            </select>
          </label>
          {loops.length > 1 && (
            <label>
              <span class="hidden">Loop</span>
              <select
                value={model.loop ?? ""}
                onChange={(event) => model.choose(model.pid, event.currentTarget.value || null)}
              >
                <option value="">all {loops.length} loops</option>
                {loops.map(([id, loop]) => <option key={id} value={id}>{loopName(id, loop.name)}</option>)}
              </select>
            </label>
          )}
        </div>
      )}
      <Pill model={model} />
      {isShown && (
        <div class="tools">
          <button type="button" class="primary" aria-pressed={model.isPaused} onClick={() => model.pause()}>
            {model.isPaused ? (model.isRecording ? "To its end" : "Go on") : "Pause"}
          </button>
          <button type="button" onClick={onCopy} aria-label="Copy link"><span class="long">Copy link</span><span class="short">Link</span></button>
          {!model.isRecording && <button type="button" onClick={onSave} aria-label="Export trace"><span class="long">Export trace</span><span class="short">Trace</span></button>}
          <button type="button" onClick={onHelp} aria-label="Help: keys">?</button>
        </div>
      )}
      {isShown && (
        <nav aria-label="Sections">
          {SECTIONS.map(([id, name], place) => (
            <a key={id} href={model.sectionLink(id)} onClick={(event) => goTo(event, id)}>
              <span aria-hidden="true">{place + 1}</span> {name}
            </a>
          ))}
        </nav>
      )}
    </header>
  );
}

// How the page stands, in a word.
function Pill({ model }: { model: Model }) {
  const { moment, standing } = model;
  const time = clock(moment.wall, true);
  const pill = (kind: string, text: ComponentChildren) => (
    <p class={`pill ${kind}`}><i aria-hidden="true" />{text}</p>
  );
  if (model.range) return pill("paused", `${duration(model.range[1] - model.range[0])} until ${time}`);
  if (model.isPaused) return pill("paused", `${model.isRecording ? "recording at" : "paused at"} ${time}`);
  if (model.isRecording) return pill("recording", `recording, until ${time}`);
  if (standing === "live") return pill("live", `live ${clock(moment.wall)}`);
  if (standing === "connecting") return pill("waiting", "connecting");
  if (standing === "refused") return pill("lost", `refused since ${time}`);
  if (standing === "ended") return pill("lost", `stopped at ${time}`);
  return pill("lost", `no connection since ${time}`);
}

// What has happened to the server and to processes.
function Banner({ model }: { model: Model }) {
  const lines: string[] = [];
  if (model.standing === "lost" && model.history.frames) {
    lines.push("The connection to blacklight live is lost. What was seen stays here; the page tries again by itself.");
  } else if (model.standing === "lost") {
    lines.push("blacklight live does not answer. Is it still running? Its address changes with each start.");
  } else if (model.standing === "refused") {
    const rest = model.history.frames ? "What was seen stays here, and the page does not try again." : "The page does not try again.";
    lines.push(`What answers at this address does not know this page: blacklight live was started anew, and has said another address. ${rest}`);
  } else if (model.standing === "ended") {
    lines.push(`${model.note[0]?.toUpperCase() ?? ""}${model.note.slice(1)}. What was seen stays here.`);
  }
  if (model.missing) lines.push("The moment of the link is not kept any more; this is the newest.");
  // What has happened is told whatever moment is shown.
  for (const [pid, documents] of model.history.now.processes) {
    const process = documents.process;
    const isShown = documents.turn.size > 0 || pid === model.root;
    if (!process || !isShown || model.root === null) continue;
    if (process.state === "ended") {
      lines.push(`Process ${pid}, ${program(process.program)}, has ended at ${clock(model.history.now.wallOf(process.ended))}${/ended/.test(process.note) ? "" : `: ${process.note}`}. What was read last stays here.`);
    } else if (process.state === "unreadable") {
      lines.push(`Process ${pid} cannot be watched: ${process.note}.`);
    }
    if (process.refused) lines.push(`Process ${pid} had no memory for ${process.refused} parts of its record.`);
  }
  const all = [...model.history.now.processes.values()];
  const left = all.filter(({ process }) => process?.state === "known" && /not watched/.test(process.note)).length;
  if (left && model.root !== null) {
    lines.push(`${left === 1 ? "1 more process is" : `${left} more processes are`} not watched, since 32 others are.`);
  }
  return (
    <div role="alert" class="banners">
      {lines.map((line) => <p key={line} class="banner">{line}</p>)}
    </div>
  );
}

function Waiting({ model }: { model: Model }) {
  const process = model.root === null ? undefined : model.moment.processes.get(model.root)?.process;
  if (process?.state === "ended" || process?.state === "unreadable") return null;
  return (
    <p class="waiting">
      {model.history.frames === 0
        ? "Waiting for the first reading …"
        : process
          ? `Waiting for process ${process.pid}: ${process.note || "its loop has not turned yet"}.`
          : `There is no process ${model.root} on Blacklight.`}
    </p>
  );
}

// The processes that can be watched.
function Processes({ model }: { model: Model }) {
  const processes = [...model.moment.processes].flatMap(([, documents]) => (documents.process ? [documents.process] : []));
  return (
    <section class="panel choose" id="answers" tabIndex={-1} aria-labelledby="choose-title">
      <h2 id="choose-title">Choose a process</h2>
      <ul class="processes">
        {processes.map((process) => (
          <li key={process.pid}>
            <a href={`#pid=${process.pid}`}>
              <strong>{program(process.program)}</strong>
              <span class="note">process {process.pid}{process.state === "unreadable" ? `: ${process.note}` : ""}</span>
            </a>
          </li>
        ))}
      </ul>
      {!processes.length && (
        <p class="empty">
          {model.history.frames
            ? <>No process of yours runs on Blacklight now. <code>blacklight live -- node app.js</code> starts one; it appears here by itself.</>
            : "Looking for processes …"}
        </p>
      )}
    </section>
  );
}

function Footer({ model }: { model: Model }) {
  const { history } = model;
  const lost = [...model.moment.processes].reduce((sum, [, documents]) => sum + (documents.process?.lost ?? 0), 0);
  if (!history.frames) return null;
  return (
    <footer>
      <p>
        {history.now.at - history.first >= 1e9 && `The last ${duration(history.now.at - history.first)} are kept here. `}Nothing leaves this machine.
        {lost > 0 && ` ${lost} single events were overwritten before they could be read; sums and counts have them all.`}
      </p>
    </footer>
  );
}
