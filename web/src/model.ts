// What the page shows: a scope, a moment or a range of what was told, and who is told of changes.

import { Feed, type Standing } from "./feed";
import { History } from "./history";
import { Moment, type Documents } from "./documents";

// The text of frames that is kept, but for a recording's.
const LIMIT = 64_000_000;

const PACE_MS = 240;

export type Range = readonly [number, number];

export class Model {
  history = new History(LIMIT);
  standing: Standing = "connecting";
  note = "";
  // The process that was asked for; its descendants are shown as well.
  root: number | null = null;
  // The process and loop that are shown; null for all.
  pid: number | null = null;
  loop: string | null = null;
  // The process that was chosen before a loop was.
  private around: number | null = null;
  // The moment that is shown, or null for the newest.
  cursor: number | null = null;
  range: Range | null = null;
  // Where a range is to begin whose end is still to come.
  start: number | null = null;
  // The seconds that the charts show, or 0 for all.
  window = 60;
  isRecording = false;
  private feed: Feed | undefined;
  private listeners = new Set<() => void>();
  private isDue = false;
  private past: Moment | undefined;
  private pastAt = 0;
  private base: { from: number; moment: Moment } | undefined;
  private wanted: number | null = null;

  constructor() {
    this.readLink();
    window.addEventListener("hashchange", () => {
      const before = this.root;
      this.readLink();
      if (before !== this.root) this.connect();
      this.changed();
    });
    this.connect();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // Grows when words and tables are to be drawn anew: at once for the user, and otherwise at a pace at which they can be read.
  pace = 0;
  private paced = 0;

  // Draws with the next picture of the screen.
  changed(isFrame = false): void {
    const now = performance.now();
    if (!isFrame || now - this.paced >= PACE_MS) {
      this.pace += 1;
      this.paced = now;
    }
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      for (const listener of this.listeners) listener();
    });
  }

  get isPaused(): boolean {
    return this.cursor !== null;
  }

  // What was known at the moment that is shown.
  get moment(): Moment {
    if (this.cursor === null || this.cursor >= this.history.now.at) return this.history.now;
    if (!this.past || this.pastAt !== this.cursor) {
      this.past = this.history.moment(this.cursor);
      this.pastAt = this.cursor;
    }
    return this.past;
  }

  // What was known before the time that tables of costs are about.
  get before(): Moment | undefined {
    const from = this.range ? this.range[0] : this.moment.at - 10e9;
    if (!this.range && this.cursor === null) return this.history.costs(from);
    if (this.base?.from !== from) {
      this.base = { from, moment: this.history.moment(Math.max(from, this.history.first)) };
    }
    return this.base.moment;
  }

  // The processes that are shown, with what was known of them.
  get shown(): [number, Documents][] {
    const all = [...this.moment.processes].filter(([, documents]) => documents.turn.size || documents.answers.length);
    return this.pid === null ? all : all.filter(([pid]) => pid === this.pid);
  }

  pause(): void {
    this.seek(this.isPaused ? null : this.history.now.at);
  }

  seek(at: number | null): void {
    this.cursor = at === null ? null : Math.min(Math.max(at, this.history.first), this.history.now.at);
    if (at === null) this.range = null;
    this.changed();
  }

  select(range: Range | null): void {
    this.range = range && range[1] > range[0] ? range : null;
    if (this.range) this.cursor = this.range[1];
    this.changed();
  }

  choose(pid: number | null, loop: string | null): void {
    if (this.loop === null) this.around = this.pid;
    this.pid = pid;
    this.loop = loop;
    this.changed();
  }

  // Leaves the loop that was chosen for what was shown before.
  leave(): void {
    this.choose(this.around, null);
  }

  // An address that leads to a section of what is shown, as it is by then.
  sectionLink(section: string): string {
    const parts = this.scope();
    parts.set("section", section);
    return `#${parts}`;
  }

  // The part of an address that says of what.
  private scope(): URLSearchParams {
    const parts = new URLSearchParams();
    if (this.root !== null) parts.set("pid", String(this.root));
    if (this.pid !== null) parts.set("process", String(this.pid));
    if (this.loop !== null) parts.set("loop", this.loop);
    return parts;
  }

  // An address that leads to what is shown now.
  link(): string {
    const parts = this.scope();
    const { moment } = this;
    if (this.range) {
      parts.set("from", String(Math.round(moment.wallOf(this.range[0]))));
      parts.set("to", String(Math.round(moment.wallOf(this.range[1]))));
    } else {
      parts.set("t", String(Math.round(moment.wallOf(this.cursor ?? moment.at))));
    }
    return `${location.origin}${location.pathname}#${parts}`;
  }

  private readLink(): void {
    const parts = new URLSearchParams(location.hash.slice(1));
    const number = (name: string) => {
      const value = Number(parts.get(name) ?? NaN);
      return Number.isFinite(value) ? value : null;
    };
    this.root = number("pid");
    this.pid = number("process");
    this.loop = parts.get("loop");
    this.around = this.pid;
    this.section = parts.get("section");
    const [from, to] = [number("from"), number("to")];
    this.wanted = to ?? number("t");
    this.wantedRange = from !== null && to !== null ? [from, to] : null;
    this.goToWanted();
  }

  private wantedRange: [number, number] | null = null;
  missing = false;
  // The section that a link leads to, until the page is there.
  section: string | null = null;

  // Goes to the moment of a link, when it is known.
  private goToWanted(): void {
    const { now, first } = this.history;
    if (this.wanted === null || !now.at) return;
    const at = (wall: number) => now.at + (wall - now.wall) * 1e6;
    const wanted = at(this.wanted);
    // Links count in milliseconds.
    const isKnown = wanted >= first - 2e6 && wanted <= now.at + 2e6;
    // What comes of a recording may still have it.
    if (this.isRecording && this.standing !== "whole") return;
    this.missing = !isKnown;
    if (isKnown) {
      this.cursor = Math.min(Math.max(wanted, first), now.at);
      this.range = this.wantedRange ? [at(this.wantedRange[0]), this.cursor] : null;
    }
    this.wanted = null;
    this.wantedRange = null;
  }

  private connect(): void {
    this.feed?.close();
    const history = new History(LIMIT);
    this.history = history;
    this.cursor = this.range = null;
    this.past = this.base = undefined;
    this.feed = new Feed(this.root, {
      frame: (text) => {
        history.push(text);
        // The past goes by in no time, and nobody could follow it.
        if (this.standing !== "live") return;
        if (this.wanted !== null) this.goToWanted();
        this.changed(true);
      },
      newest: () => history.now.at,
      recording: () => {
        this.isRecording = true;
        // The server has checked how large it is.
        history.limit = Infinity;
      },
      standing: (standing, note) => {
        this.standing = standing;
        this.note = note;
        if (standing === "whole") this.window = 0;
        if (standing === "whole" || standing === "live") this.goToWanted();
        this.changed();
      },
    });
  }
}
