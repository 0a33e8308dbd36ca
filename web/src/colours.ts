// The colours of the style sheet, for canvases. Asking the browser for one has it bring all styles up to date, so they are asked for once.

const known = new Map<string, string>();
const patterns = new Map<string, CanvasPattern | string>();

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  known.clear();
  patterns.clear();
});

export function colour(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    known.set(name, value);
  }
  return value;
}

// What sets areas apart that differ in colour; the style sheet has the same for legends.
export type Texture = "plain" | "stripes" | "dots" | "rules";

const TILE = 6;

// A colour with a texture in another, to fill with.
export function textured(name: string, texture: Texture, ink: string): CanvasPattern | string {
  if (texture === "plain") return colour(name);
  const key = `${name} ${texture} ${ink} ${devicePixelRatio}`;
  let fill = patterns.get(key);
  if (fill === undefined) {
    fill = draw(colour(name), texture, colour(ink)) ?? colour(name);
    patterns.set(key, fill);
  }
  return fill;
}

function draw(ground: string, texture: Texture, ink: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(TILE * devicePixelRatio);
  const ctx = tile.getContext("2d");
  if (!ctx) return null;
  const size = tile.width;
  ctx.fillStyle = ground;
  ctx.fillRect(0, 0, size, size);
  ctx.fillStyle = ctx.strokeStyle = ink;
  ctx.lineWidth = size / 5;
  if (texture === "dots") ctx.fillRect(size / 3, size / 3, size / 3, size / 3);
  else if (texture === "rules") ctx.fillRect(0, size / 2, size, size / 5);
  else {
    ctx.beginPath();
    // The line goes on in the tiles beside it.
    for (const from of [-size, 0, size]) {
      ctx.moveTo(from - 1, size + 1);
      ctx.lineTo(from + size + 1, -1);
    }
    ctx.stroke();
  }
  return ctx.createPattern(tile, "repeat");
}
