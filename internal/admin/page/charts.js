// The charts of the last hour. They take the page's colours, and take them anew
// when the browser changes between light and dark.

import { $, number, seconds } from "./dom.js";

const step = 10; // seconds from one point to the next

const kinds = {
  jobs: { series: [["jobs_per_second", "--s1"], ["failed_per_second", "--s2"], ["lost_per_second", "--s3"]], unit: number },
  first: { series: [["first_byte_p50_seconds", "--s1"], ["first_byte_p99_seconds", "--s2"]], unit: seconds, gaps: true },
  data: { series: [["found_share", "--s1"], ["shadow_found_share", "--s2"]], unit: (x) => Math.round(100 * x) + " %", top: 1, gaps: true },
  load: { series: [["in_flight", "--s1"], ["waiting", "--s2"]], unit: number },
};

const charts = {};
let points = null; // of the last hour
let warnings = []; // seconds since 1970

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// columns are the instants, and the values of each line. Without a job there is no time to first byte and no share.
function columns(kind) {
  return [points.map((p) => p.at), ...kind.series.map(([name]) => points.map((p) => (kind.gaps && (p[name] < 0 || (p[name] === 0 && !kind.top)) ? null : p[name])))];
}

function draw() {
  for (const [name, kind] of Object.entries(kinds)) {
    const box = $("#chart-" + name);
    charts[name]?.destroy();
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    charts[name] = new uPlot({
      width: box.clientWidth, height: 150,
      cursor: { points: { size: 6 } }, legend: { show: false }, select: { show: false },
      scales: {
        x: { range: (_, from, to) => within(from, to) },
        y: { range: (_, lo, hi) => [0, kind.top ? kind.top : hi > 0 ? hi * 1.1 : 1] },
      },
      axes: [
        { ...axis, size: 26, space: 70, values: (_, ticks) => ticks.map(clock) },
        { ...axis, size: 56, values: (_, ticks) => ticks.map(kind.unit) },
      ],
      hooks: { draw: [marks] },
      series: [{}, ...kind.series.map(([, c]) => ({ stroke: color(c), width: 1.5, points: { show: points.length < 3 } }))],
    }, columns(kind), box);
  }
}

// marks draws a line through a chart at each warning.
function marks(chart) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = color("--warn");
  ctx.setLineDash([4, 4]);
  for (const at of warnings) {
    const x = Math.round(chart.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// markEvents marks the warnings among the events.
export function markEvents(events) {
  warnings = events.filter((e) => e.level !== "info").map((e) => Date.parse(e.at) / 1000);
  for (const chart of Object.values(charts)) chart.redraw(false); // with true, a chart that was never drawn gets the times of 1970
}

// within shows at least a minute, up to the last point. Of one point the library knows
// no range.
function within(from, to) {
  const end = points.length < 2 ? points.at(-1)?.at ?? to : to;
  return end - from < 60 ? [end - 60, end] : [from, end];
}

// clock writes the time of a tick, with seconds while the charts are young.
function clock(t) {
  const young = points.length < 300 / step;
  return new Date(t * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: young ? "2-digit" : undefined, hour12: false });
}

// due reports whether there is a new point by now.
export const due = (now) => points === null || now / 1000 - (points.at(-1)?.at ?? 0) >= step;

// load shows the points of the last hour.
export function load(history) {
  const few = (points?.length ?? 0) < 3;
  points = history.points;
  if (points.length === 0) return;
  if (few) return draw();
  for (const [name, kind] of Object.entries(kinds)) charts[name].setData(columns(kind));
}

let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => points?.length && draw(), 150);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => points?.length && draw());
