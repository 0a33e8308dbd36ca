// Numbers and times as the views of the terminal print them (`crates/cli/src/words.rs`).

// The longest text that is shown whole.
const LONGEST = 2_000;

export function duration(ns: number): string {
  if (!(ns >= 1)) return "0 ns";
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  const units: [number, number, string][] = [
    [1e6, 1e3, "µs"],
    [1e9, 1e6, "ms"],
    [120e9, 1e9, "s"],
    [7200e9, 60e9, "min"],
    [172800e9, 3600e9, "h"],
    [Infinity, 86400e9, "days"],
  ];
  const [, unit, name] = units.find(([limit]) => ns < limit)!;
  const number = ns / unit;
  const text = number < 9.95 ? number.toFixed(1) : number.toFixed(0);
  return `${text.replace(/\.0$/, "")} ${name}`;
}

export function number(value: number): string {
  if (value < 10_000) return String(Math.round(value));
  if (value < 10_000_000) return `${Math.floor(value / 1e3)}k`;
  return `${Math.floor(value / 1e6)}M`;
}

export function percent(part: number, whole: number): number {
  return whole > 0 ? (part / whole) * 100 : 0;
}

export function count(value: number, noun: string): string {
  return `${number(value)} ${value === 1 ? noun : `${noun}s`}`;
}

// As much of a text as somebody reads: those of a program may have any length.
export function bounded(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}

export function clock(wall: number, tenths = false): string {
  const date = new Date(wall);
  const two = (value: number) => String(value).padStart(2, "0");
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return tenths ? `${text}.${Math.floor(date.getMilliseconds() / 100)}` : text;
}

// A name without its modules and its place.
export function shortTask(name: string): string {
  return name.replace(/ \([^()]*\)$/, "").replace(/^.*(::|\.)(?=[\w$])/, "");
}

// A command line without the directory of its program. The demo is a child of the command with words of its own.
export function program(line: string): string {
  const first = line.split(" ", 1)[0] ?? "";
  const short = line.slice(first.lastIndexOf("/") + 1);
  return isDemo(line) ? "the demo" : short;
}

// Whether a command line is that of the demo.
export function isDemo(line: string): boolean {
  return /^(\S*\/)?blacklight live-demo\b/.test(line);
}
