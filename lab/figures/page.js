// Draws the page's data with uPlot. Names are only ever set as text.

const data = JSON.parse(document.getElementById("data").textContent);
const colors = ["#2a6fb0", "#d9822b", "#2e9e6b", "#b04a8f", "#7a5cc8", "#8a8f98", "#c2453c", "#3aa6a6", "#a68a2a", "#5b6f2e", "#244b7a", "#e0a96d", "#7fc6a4", "#d69ac0"];
const [good, middling, bad] = ["#2e9e6b", "#d9a22b", "#c2453c"];
const quiet = { stroke: "#5a6570", grid: { stroke: "#e9ecef", width: 1 }, ticks: { show: false }, font: "12px system-ui" };
const known = (values) => values.map((v) => (v < 0 ? null : v));

function add(parent, tag, text, cls) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return parent.appendChild(e);
}

function number(v) {
  if (v === 0 || v === null) return v === 0 ? "0" : "";
  const a = Math.abs(v);
  if (a >= 1000) return Math.round(v).toLocaleString("en");
  return a >= 10 ? String(+v.toFixed(1)) : String(+v.toPrecision(2));
}

const short = (name) => (name.length > 20 ? name.slice(0, 19) + "…" : name);

function time(s) {
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return s >= 3600 ? Math.floor(s / 3600) + ":" + two((s % 3600) / 60) + " h" : Math.floor(s / 60) + ":" + two(s % 60);
}

// chart draws a figure with a caption and a key. options are uPlot's.
function chart(parent, title, note, key, options, columns) {
  const figure = add(parent, "figure");
  add(add(figure, "figcaption", title), "small", note);
  const names = add(figure, "div", undefined, "key");
  for (const [name, color] of key) {
    const label = add(names, "span");
    add(label, "i").style.background = color;
    label.append(name);
  }
  const box = add(figure, "div");
  new uPlot({ width: box.clientWidth || 560, height: 260, cursor: { show: false }, legend: { show: false }, ...options }, columns, box);
}

// upwards begins at 0.
const upwards = { range: (_, lo, hi) => [0, hi > 0 ? hi * 1.05 : 1] };

// bars draws groups: each bar has a place of its own, and those of a group stand together.
function bars(parent, figure) {
  const { groups, series } = figure, wide = series.length + 1;
  const places = [...Array(groups.length * wide).keys()];
  const columns = series.map((s, n) => places.map((x) => (x % wide === n ? known(s.values)[Math.floor(x / wide)] ?? null : null)));
  const middle = (g) => g * wide + (series.length - 1) / 2;
  chart(parent, figure.title, "", series.map((s, n) => [s.name, colors[n % colors.length]]), {
    scales: { x: { time: false, range: () => [-1, places.length] }, y: upwards },
    axes: [
      { ...quiet, grid: { show: false }, size: groups.length > 3 ? 80 : 30, rotate: groups.length > 3 ? 28 : 0, splits: () => groups.map((_, g) => middle(g)), values: () => groups.map(short) },
      { ...quiet, size: 56, values: (_, ticks) => ticks.map(number) },
    ],
    series: [{}, ...series.map((_, n) => ({ fill: colors[n % colors.length], width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.9, 70] }) }))],
  }, [places, ...columns]);
}

// segments makes a path of horizontal lines: from, to and y of each.
const segments = (lines) => (u) => {
  const stroke = new Path2D();
  for (const [from, to, y] of lines) {
    const at = u.valToPos(y, "y", true);
    stroke.moveTo(u.valToPos(from, "x", true), at);
    stroke.lineTo(Math.max(u.valToPos(to, "x", true), u.valToPos(from, "x", true) + 1), at);
  }
  return { stroke };
};

// rows draws lines side by side, of several colors. kinds have a name, a color and lines.
function rows(parent, title, note, kinds, end, count, width, names) {
  const axis = names ? { splits: () => names.map((_, i) => i), values: () => names, size: 74, grid: { show: false } } : { size: 56, values: (_, ticks) => ticks.map(number) };
  chart(parent, title, note, kinds.map((k) => [k.name, k.color]), {
    scales: { x: { time: false, range: () => [0, end] }, y: { range: () => [-1, count] } },
    axes: [{ ...quiet, values: (_, ticks) => ticks.map(time) }, { ...quiet, ...axis }],
    series: [{}, ...kinds.map((k) => ({ stroke: k.color, width, points: { show: false }, paths: segments(k.lines) }))],
  }, [[0, end], ...kinds.map(() => [0, count])]);
}

// timeline has a line for each job, from its arrival to the first byte of its response.
function timeline(parent, jobs) {
  const ends = jobs.at.map((at, i) => at + Math.max(jobs.first[i], jobs.last[i], 0));
  const lines = (is) => jobs.at.map((at, i) => [at, jobs.first[i] < 0 ? ends[i] : at + jobs.first[i], i]).filter(([, , i]) => is(jobs.whole[i]));
  rows(parent, "Timeline", "each job from its arrival to the first byte (Turner, figures 9 to 11, 15 to 19, 27, 29, 31, 32)", [
    { name: "whole response", color: good, lines: lines((w) => w === 1) },
    { name: "a part", color: middling, lines: lines((w) => w > 0 && w < 1) },
    { name: "no response", color: bad, lines: lines((w) => w === 0) },
  ], Math.max(1, ...ends), jobs.at.length, jobs.at.length > 200 ? 1 : 2);
}

// figures of each job, over the modes of the system.
function keyFigures(parent, jobs) {
  const first = known(jobs.first), last = known(jobs.last).map((v, i) => (jobs.whole[i] === 0 ? null : v)), n = jobs.at.length;
  const between = first.map((f, i) => (f === null || last[i] === null ? null : last[i] - f));
  const lost = jobs.whole.map((w) => (w === 1 ? null : w));
  const part = n / jobs.modes.length, tints = [, "#2e9e6b14", "#d9a22b26", "#c2453c2b"];
  const dots = (color, size) => ({ stroke: color, paths: () => null, points: { show: true, size, width: 0, fill: color } });
  const line = (color) => (n > 150 ? dots(color, 3) : { stroke: color, width: 1.2, points: { show: false } });
  const modes = (u) => jobs.modes.forEach((mode, i) => {
    const from = u.valToPos(i * part, "x", true), to = u.valToPos(Math.min(n, (i + 1) * part), "x", true);
    u.ctx.fillStyle = tints[mode];
    u.ctx.fillRect(from, u.bbox.top, to - from, u.bbox.height);
  });
  chart(parent, "Key figures of each job", "first byte: " + number(jobs.slope * 1000) + " ms more from one job to the next (Turner, figures 12 to 14, 20 to 26, 28, 30, 33, 34)", [
    ["first byte, s", colors[0]], ["last byte, s", colors[1]], ["between, s", colors[5]], ["not whole: its share, on the right", bad],
    ["mode 1: flat", good], ["mode 2: rising", middling], ["mode 3: failing", "#c2453c88"],
  ], {
    scales: { x: { time: false, range: () => [0, Math.max(1, n)] }, y: upwards, share: { range: () => [0, 1.05] } },
    axes: [{ ...quiet, values: (_, ticks) => ticks.map(number) }, { ...quiet, size: 56, values: (_, ticks) => ticks.map(number) },
      { ...quiet, scale: "share", side: 1, grid: { show: false }, stroke: bad, size: 40, splits: () => [0, 0.5, 1], values: (_, ticks) => ticks.map(number) }],
    series: [{}, line(colors[5]), line(colors[1]), line(colors[0]), { ...dots(bad, 5), scale: "share" }],
    hooks: { drawClear: [modes] },
  }, [jobs.at.map((_, i) => i), between, last, first, lost]);
}

// availability is the strip of each upstream, and levels are those of the four that changed most.
function availability(parent, run) {
  const at = run.instants, end = at[at.length - 1], step = at[1] - at[0] || 1, kinds = [
    { name: "takes all jobs", color: good, is: (v) => v >= 1 }, { name: "some", color: middling, is: (v) => v > 0 && v < 1 }, { name: "overloaded", color: bad, is: (v) => v <= 0 },
  ];
  for (const k of kinds) {
    k.lines = run.levels.flatMap((s, y) => s.values.flatMap((v, i) => (k.is(v) ? [[at[i] - step, at[i], run.levels.length - 1 - y]] : [])));
  }
  const names = run.levels.map((s) => s.name).reverse();
  rows(parent, "Availability", "whether the first sidecar may send jobs (thesis, figure 14)", kinds, end, names.length, Math.max(2, 130 / names.length), names.length <= 30 ? names : null);
  const moves = (s) => s.values.reduce((sum, v, i) => sum + (i ? Math.abs(v - s.values[i - 1]) : 0), 0);
  const most = [...run.levels].sort((a, b) => moves(b) - moves(a)).slice(0, 4);
  chart(parent, "Level over time", "of the upstreams where it changes most: 1 takes all jobs, 0 none (thesis, figure 15)", most.map((s, n) => [s.name, colors[n]]), {
    scales: { x: { time: false }, y: { range: () => [0, 1.05] } },
    axes: [{ ...quiet, values: (_, ticks) => ticks.map(time) }, { ...quiet, size: 56 }],
    series: [{}, ...most.map((_, n) => ({ stroke: colors[n], width: 1.2, points: { show: false }, paths: uPlot.paths.stepped({ align: -1 }) }))],
  }, [at, ...most.map((s) => s.values)]);
}

for (const figure of data.bars ?? []) bars(document.getElementById("bars"), figure);
for (const run of data.runs ?? []) {
  const parent = document.getElementById("runs");
  add(parent, "h2", run.name);
  const box = add(parent, "div", undefined, "run");
  if (run.jobs.at?.length) {
    timeline(box, run.jobs);
    keyFigures(box, run.jobs);
  }
  if (run.instants?.length > 1) availability(box, run);
}
document.body.dataset.drawn = document.querySelectorAll("figure canvas").length;
