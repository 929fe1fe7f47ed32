// The three charts of the last hour. They take the page's colours, and take them anew
// when the browser changes between light and dark.

import { $, number, seconds } from "./dom.js";

const kept = 360; // points: an hour of one every ten seconds

const kinds = {
  jobs: { series: [["jobs_per_second", "--s1"], ["lost_per_second", "--s3"]], unit: number },
  first: { series: [["first_byte_p50_seconds", "--s1"], ["first_byte_p99_seconds", "--s2"]], unit: seconds, gaps: true },
  load: { series: [["in_flight", "--s1"], ["waiting", "--s2"]], unit: number },
};

const charts = {};
let history = null;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function columns(kind) {
  const lines = kind.series.map(([name]) => history[name]);
  // Without a job there is no time to first byte.
  return [history.at, ...lines.map((l) => (kind.gaps ? l.map((v) => (v === 0 ? null : v)) : l))];
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
        y: { range: (_, lo, hi) => [0, hi > 0 ? hi * 1.1 : 1] },
      },
      axes: [
        { ...axis, size: 26, space: 70, values: (_, ticks) => ticks.map(clock) },
        { ...axis, size: 56, values: (_, ticks) => ticks.map(kind.unit) },
      ],
      series: [{}, ...kind.series.map(([, c]) => ({ stroke: color(c), width: 1.5, points: { show: history.at.length < 3 } }))],
    }, columns(kind), box);
  }
}

// within shows at least a minute, up to the last point. Of one point the library knows
// no range.
function within(from, to) {
  const end = history.at.length < 2 ? history.at.at(-1) ?? to : to;
  return end - from < 60 ? [end - 60, end] : [from, end];
}

// clock writes the time of a tick, with seconds while the charts are young.
function clock(t) {
  const young = history.at.at(-1) - history.at[0] < 300;
  return new Date(t * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: young ? "2-digit" : undefined, hour12: false });
}

// load takes the history from the sidecar, and draws.
export function load(series) {
  history = series;
  draw();
}

// due says whether the history has a new point by now.
export const due = (now) => history === null || now / 1000 - (history.at.at(-1) ?? 0) >= history.step_seconds;

// refresh shows a newer history in the charts that are there.
export function refresh(series) {
  const few = history.at.length < 3;
  history = series;
  if (few) return draw();
  for (const [name, kind] of Object.entries(kinds)) charts[name].setData(columns(kind));
}

// spark is the points of an upstream's line: its jobs in the last hour.
export function spark(address) {
  const values = history?.upstreams?.[address] ?? [];
  const top = Math.max(1, ...values);
  const shift = 60 - values.length; // minutes before it came
  return values.map((v, i) => `${shift + i},${20 - (18 * v) / top}`).join(" ");
}

let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => history && draw(), 150);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => history && draw());
