// A chart over time. Dragging selects a range, and a click goes to a moment.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colour, textured, type Texture } from "./colours";
import { clock } from "./format";
import { useWidth } from "./parts";

export interface Line {
  name: string;
  colour: string;
  fill?: string;
  texture?: Texture;
  width?: number;
}

export interface Mark {
  from: number;
  to: number;
}

export interface ChartProps {
  // Wall times in seconds, and the values of each line.
  data: (number | null)[][];
  lines: Line[];
  height: number;
  span: [number, number];
  // The wall times of the range and the moment, in seconds.
  range: readonly [number, number] | null;
  cursor: number | null;
  marks: Mark[];
  logarithmic?: boolean;
  // Whether each line lies upon the next one.
  stacked?: boolean;
  scale: (max: number) => [number, number];
  format: (value: number) => string;
  label: string;
  dark: boolean;
  onSelect: (from: number, to: number) => void;
  onSeek: (at: number) => void;
}

export function Chart(props: ChartProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const plot = useRef<uPlot | undefined>(undefined);
  const current = useRef(props);
  current.current = props;
  const key = `${props.lines.map((line) => line.name).join()}|${props.dark}|${props.height}`;
  useEffect(() => {
    if (!box.current || !width) return;
    const [ink, grid] = [colour("--quiet"), colour("--grid")];
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const made = new uPlot(
      {
        width,
        height: props.height,
        legend: { show: false },
        padding: [8, 26, 0, 0],
        cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
        scales: {
          x: { time: true, range: () => current.current.span },
          y: {
            distr: props.logarithmic ? 3 : 1,
            range: (_, __, max) => current.current.scale(max),
          },
        },
        axes: [
          { ...axis, size: 24, space: 90, values: (_, splits) => splits.map((value) => clock(value * 1e3)) },
          {
            ...axis,
            size: 58,
            space: 26,
            values: (_, splits) => splits.map((value) => (value === null ? null : current.current.format(value))),
            ...(props.logarithmic ? { filter: powers, grid: { stroke: grid, width: 1, filter: powers } } : {}),
          },
        ],
        bands: props.stacked ? props.lines.slice(1).map((_, at) => ({ series: [at + 1, at + 2] as [number, number] })) : [],
        series: [
          {},
          ...props.lines.map((line) => ({
            label: line.name,
            stroke: colour(line.colour),
            width: line.width ?? 1.25,
            ...(line.fill ? { fill: textured(line.fill, line.texture ?? "plain", line.colour) } : {}),
            points: { show: false },
            spanGaps: false,
          })),
        ],
        hooks: {
          drawClear: [(plot) => drawBack(plot, current.current)],
          draw: [(plot) => drawFront(plot, current.current)],
          setSelect: [
            (plot) => {
              const { left, width } = plot.select;
              if (width < 3) return;
              const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              current.current.onSelect(from, to);
            },
          ],
          ready: [
            (plot) => {
              plot.over.addEventListener("click", () => {
                const { left } = plot.cursor;
                if (left !== undefined && left >= 0) current.current.onSeek(plot.posToVal(left, "x"));
              });
            },
          ],
        },
      },
      props.data as uPlot.AlignedData,
      box.current,
    );
    plot.current = made;
    return () => {
      plot.current = undefined;
      made.destroy();
    };
  }, [width, key]);
  useEffect(() => {
    plot.current?.setData(props.data as uPlot.AlignedData, true);
  }, [props.data, props.span[0], props.span[1], props.range, props.cursor]);
  return <div class="chart" ref={box} role="img" aria-label={props.label} style={{ height: `${props.height}px` }} />;
}

// Of a logarithmic scale the powers of ten.
function powers(_: uPlot, splits: number[]): (number | null)[] {
  return splits.map((value) => (Math.log10(value) % 1 ? null : value));
}

// Stalls and the range lie behind the lines.
function drawBack(plot: uPlot, props: ChartProps): void {
  const { ctx, bbox } = plot;
  const x = (at: number) => Math.min(Math.max(plot.valToPos(at, "x", true), bbox.left), bbox.left + bbox.width);
  ctx.save();
  if (props.range) {
    ctx.fillStyle = colour("--range");
    const [left, right] = [x(props.range[0]), x(props.range[1])];
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  for (const mark of props.marks) {
    const [left, right] = [x(mark.from), x(mark.to)];
    if (right <= bbox.left || left >= bbox.left + bbox.width) continue;
    ctx.fillStyle = colour("--stall-back");
    ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
    ctx.fillStyle = colour("--bad");
    ctx.fillRect(left, bbox.top, Math.max(2, right - left), 3 * devicePixelRatio);
  }
  ctx.restore();
}

function drawFront(plot: uPlot, props: ChartProps): void {
  if (props.cursor === null) return;
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(props.cursor, "x", true));
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = colour("--accent");
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}
