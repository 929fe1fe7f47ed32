// The page of the admin port: it shows what /api/events sends every two seconds.

import { $, clock, element, fill, number, percent, seconds, setClass, setText } from "./dom.js";
import { due, load, refresh } from "./charts.js";
import { allowWrite, setFind, setUpstreams } from "./fleet.js";
import "./pick.js";

const sentences = {
  unknown: "Too few jobs ended to tell how they are served.",
  flat: "Each job is served like the one before.",
  growing: "More work comes than is done: each job waits longer than the one before.",
  losing: "Submitters get their results in part, or not at all.",
};

function header(now) {
  const f = now.fleet;
  setText($("#mode"), f.mode);
  setClass($("#mode"), "badge " + f.mode);
  let text = sentences[f.mode];
  if (now.not_ready) text = `Takes no jobs: ${now.not_ready}.`;
  else if (f.mode === "growing") {
    text += ` Times to first byte rise by ${seconds(f.trend.slope_seconds_per_job)} a job.`;
    if (f.deadline_in_seconds !== undefined) text += ` The first deadline passes in ${seconds(f.deadline_in_seconds)}, ${number(Math.round(f.deadline_in_jobs))} jobs.`;
  }
  setText($("#sentence"), text);
  document.title = f.mode === "losing" || f.mode === "growing" ? `${f.mode} – pilotfish` : "pilotfish";
}

function tiles(now) {
  const minute = now.fleet.windows[0];
  const all = minute.all;
  const eligible = now.upstreams.filter((u) => u.eligible).length;
  const list = [
    ["jobs each second", minute.covered_seconds ? number(all.jobs / minute.covered_seconds) : "0", ""],
    ["first byte, median", all.first_byte_seconds.count ? seconds(all.first_byte_seconds.p50) : "–", ""],
    ["first byte, p99", all.first_byte_seconds.count ? seconds(all.first_byte_seconds.p99) : "–", ""],
    ["complete", all.jobs ? percent(all.complete / all.jobs) : "–", all.complete < all.jobs ? "bad" : ""],
    ["at upstreams", number(now.in_flight), ""],
    ["waiting here", number(now.waiting), now.waiting ? "warn" : ""],
    ["upstreams eligible", `${eligible} of ${now.upstreams.length}`, eligible < now.upstreams.length ? "warn" : ""],
    ["backlog imbalance", number(now.backlog_imbalance), ""],
  ];
  if (now.unread) list.push(["not read, since the start", number(now.unread.jobs), "bad", `Passed on without priority and project. The last one: ${now.unread.why}.`]);
  const box = $("#tiles");
  list.forEach(([title, text, cls, hover = ""], i) => {
    const tile = box.children[i] ?? box.appendChild(element("div", "", element("dt", ""), element("dd", "")));
    setText(tile.children[0], title);
    setText(tile.children[1], text);
    setClass(tile.children[1], cls);
    if (tile.title !== hover) tile.title = hover;
  });
}

function windows(now) {
  const rows = now.fleet.windows.flatMap((w) => ["high", "low"].map((p) => [w, p]));
  fill($("#windows tbody"), rows, null, ([w, p]) => {
    const f = w[p];
    const time = (q, v) => [q.count ? seconds(v) : "–"];
    return [
      [p === "high" ? `${w.seconds / 60} min` : "", "text"], [p, "text"], [number(f.jobs)], [number(f.complete)],
      [number(f.partial), f.partial ? "bad" : ""], [number(f.absent), f.absent ? "bad" : ""],
      time(f.first_byte_seconds, f.first_byte_seconds.p50), time(f.first_byte_seconds, f.first_byte_seconds.p90), time(f.first_byte_seconds, f.first_byte_seconds.p99),
      time(f.last_byte_seconds, f.last_byte_seconds.p50), time(f.last_byte_seconds, f.last_byte_seconds.p99),
      [f.stretch.count ? number(f.stretch.p50) : "–"], [f.stretch.count ? percent(f.slowdown_mean) : "–"],
    ];
  });
  const lost = Object.entries(now.fleet.windows[0].all.lost ?? {}).map(([outcome, n]) => `${outcome.replace("_", " ")} ${n}`);
  setText($("#lost"), lost.length ? `Lost in the last minute, by outcome: ${lost.join(", ")}.` : "");
}

// capacity says how full the fleet is, and how many upstreams it needs.
function capacity(c) {
  $("#capacity .scroll").hidden = !c;
  if (!c) {
    setText($("#advice"), "Too few jobs were seen to tell, or no upstream tells how many of its cores are busy.");
    return;
  }
  const change = (n) => (n > 0 ? `add ${n}` : n < 0 ? `${-n} may go` : "as many as there are");
  const best = c.bounded && c.flat.change > 0 ? `; ${change(c.bounded.change)} to keep the first byte within ${seconds(c.bound_seconds)} in the busiest minute` : "";
  setText($("#advice"), `It can do ${number(c.jobs_per_second)} jobs each second of ${seconds(c.core_seconds_per_job)} on a core. ` +
    `To serve every job alike: ${change(c.flat.change)}${best}. This is told by the last ${seconds(c.covered_seconds)}.`);
  const rows = [
    ["in the last minute", c.upstreams, c.now.full, c.now.jobs_per_second, null],
    ["in the busiest minute", c.upstreams, c.busiest_minute.full, c.busiest_minute.jobs_per_second, null],
    ["that serves every job alike", c.flat.upstreams, c.flat.full, c.busiest_minute.jobs_per_second, c.flat.first_byte_seconds],
  ];
  if (c.bounded) rows.push([`with a first byte within ${seconds(c.bound_seconds)}`, c.bounded.upstreams, c.bounded.full, c.busiest_minute.jobs_per_second, c.bounded.first_byte_seconds]);
  fill($("#capacity tbody"), rows, null, ([name, upstreams, full, jobs, first]) => [
    [name, "text"], [number(upstreams)], [`${Math.round(100 * full)} %`, full > 1 ? "bad" : ""], [number(jobs)], [first === null ? "" : seconds(first)],
  ]);
}

function places(addresses, cls) {
  return addresses.map((a) => {
    const link = element("a", cls, a);
    link.href = "#upstreams";
    link.addEventListener("click", (e) => {
      e.preventDefault();
      setFind(a);
    });
    return link;
  });
}

const key = (value) => JSON.stringify(value);
const last = {};

// changed reports whether a part of the page must be written anew.
function changed(name, value) {
  const now = key(value);
  const was = last[name];
  last[name] = now;
  return was !== now;
}

const labels = (id) => [...$(`${id} thead tr`).cells].map((c) => c.textContent);

function projects(list) {
  fill($("#projects tbody"), list, labels("#projects"), (p) => {
    const at = element("span", "");
    [...places(p.cached, "ok"), ...places(p.assumed, "quiet")].forEach((l, i) => at.append(i ? ", " : "", l));
    if (!at.firstChild) at.append("nowhere");
    return [[p.name, "text"], [number(p.jobs)], [p.in_flight + (p.limit ? " of " + p.limit : "")], [number(p.waiting), p.waiting ? "bad" : ""], [at, "wide"]];
  });
}

function failures(list) {
  fill($("#failures tbody"), list, labels("#failures"), (f) => [
    [clock(f.at), "text"], [f.session ?? "–", "text"], [f.id, "text"], [f.project ?? "–", "text"], [f.priority, "text"],
    [f.outcome.replace("_", " ") + (f.status ? ` (${f.status})` : ""), "text bad"], [seconds(f.seconds)],
    [f.upstreams.join(", ") || "nowhere", "text"], [f.error ?? "", "wide"],
  ]);
}

function changes(list) {
  fill($("#changes tbody"), [...list].reverse(), labels("#changes"), (c) => [
    [clock(c.at), "text"], [c.upstream ?? "the fleet", "text"], [c.from, "text " + c.from], [c.to, "text " + c.to], [c.cause, "wide"],
  ]);
}

async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
}

let loading = false;

// charts loads the history when there is a new point.
async function charts(at) {
  if (loading || !due(at)) return;
  loading = true;
  try {
    const series = await get("/api/history");
    (last.charts ? refresh : load)(series);
    last.charts = true;
  } finally {
    loading = false;
  }
}

let drawn = null; // what is shown
let busy = false;

// show writes the page. While it is hidden only the last state is kept.
async function show(now) {
  drawn = now;
  if (document.hidden || busy) return;
  busy = true;
  try {
    await charts(Date.parse(now.at));
    header(now);
    tiles(now);
    windows(now);
    capacity(now.capacity);
    setUpstreams(now.upstreams);
    if (changed("projects", now.projects)) projects(now.projects);
    if (changed("failures", now.failures)) failures(now.failures);
    if (changed("changes", now.changes)) changes(now.changes);
    document.body.dataset.at = now.at; // the tests wait for it
  } finally {
    busy = false;
  }
}

function connected(text, lost) {
  setText($("#link"), text);
  setClass($("#link"), lost ? "link lost" : "link");
}

async function start() {
  const about = await get("/api/about");
  setText($("#build"), `pilotfish ${about.version}, ${about.go}, since ${new Date(about.started).toLocaleString()}`);
  setText($("#configuration"), about.configuration);
  if (about.write) allowWrite();
  const events = new EventSource("/api/events");
  events.addEventListener("now", (e) => {
    connected("live", false);
    show(JSON.parse(e.data));
  });
  events.addEventListener("problem", (e) => connected(`the sidecar cannot show its state: ${JSON.parse(e.data)}`, true));
  events.addEventListener("error", () => connected(`no connection since ${clock(drawn?.at ?? Date.now())}; trying again`, true));
  document.addEventListener("visibilitychange", () => drawn && show(drawn));
}

start().catch((err) => connected(String(err), true));
