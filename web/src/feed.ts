// The stream of frames from the server.

export type Standing = "connecting" | "live" | "lost" | "refused" | "ended" | "whole" | "hidden";

export interface Listener {
  frame(text: string): void;
  recording(): void;
  // The time of the newest frame that is known, in nanoseconds.
  newest(): number;
  standing(standing: Standing, note: string): void;
}

// A page that nobody sees for so long takes no more frames.
const HIDDEN_MS = 5_000;

export class Feed {
  private source: EventSource | undefined;
  private hiding: number | undefined;
  private isOver = false;

  constructor(
    private readonly pid: number | null,
    private readonly listener: Listener,
  ) {
    document.addEventListener("visibilitychange", this.see);
    this.open();
  }

  close(): void {
    document.removeEventListener("visibilitychange", this.see);
    clearTimeout(this.hiding);
    this.source?.close();
    this.isOver = true;
  }

  private open(): void {
    const { listener } = this;
    listener.standing("connecting", "");
    // What the server has kept comes first, as far as it is not known yet. A list of processes has no past.
    const hasPast = this.pid !== null;
    const source = new EventSource(hasPast ? `events?pid=${this.pid}&past=${listener.newest()}` : "events");
    this.source = source;
    let isLive = false;
    const live = () => {
      if (!isLive) listener.standing("live", "");
      isLive = true;
    };
    source.addEventListener("frame", (event: MessageEvent<string>) => {
      if (!hasPast) live();
      listener.frame(event.data);
    });
    source.addEventListener("now", live);
    source.addEventListener("recording", () => {
      live();
      listener.recording();
    });
    source.addEventListener("whole", () => {
      this.isOver = true;
      listener.standing("whole", "");
    });
    source.addEventListener("end", (event: MessageEvent<string>) => {
      source.close();
      this.isOver = true;
      listener.standing("ended", JSON.parse(event.data) as string);
    });
    source.addEventListener("error", () => {
      isLive = false;
      if (this.isOver) {
        // A recording is complete, whatever becomes of its server.
        source.close();
      } else {
        // A browser tries again where nobody answers, and never where the answer is that there is nothing.
        listener.standing(source.readyState === EventSource.CLOSED ? "refused" : "lost", "");
      }
    });
  }

  private readonly see = () => {
    if (this.isOver) return;
    clearTimeout(this.hiding);
    if (document.hidden) {
      this.hiding = window.setTimeout(() => {
        this.source?.close();
        this.source = undefined;
        this.listener.standing("hidden", "");
      }, HIDDEN_MS);
    } else if (!this.source) {
      this.open();
    }
  };
}
