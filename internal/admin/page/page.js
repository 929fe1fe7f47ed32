// The page of the admin port: it shows /api/now every two seconds.

import { $, clock, element, fill, level, number, percent, seconds, setClass, setText } from "./dom.js";
import { due, load, markEvents } from "./charts.js";
import { drawEvents } from "./events.js";
import { setUpstreams, setWrite } from "./fleet.js";
import { drawPicture } from "./picture.js";
import "./pick.js";

let host = "";

function header(now) {
  const f = now.fleet, cls = level(f.mode), warnings = now.warnings ?? [];
  setText($("#mode"), f.mode);
  setClass($("#mode"), "badge " + (cls === "bad" || !warnings.length ? cls : "warn"));
  let text = f.text[0].toUpperCase() + f.text.slice(1) + ".";
  if (now.not_ready) text = `Takes no jobs: ${now.not_ready}.`;
  else if (cls === "bad") text += ` Began at ${clock(f.since)} with: ${f.cause}.`;
  else if (cls === "warn") {
    text += ` Times to first byte rise by ${seconds(f.trend.slope_seconds_per_job)} a job.`;
    if (f.deadline_in_seconds !== undefined) text += ` If they rise on, the first job fails in ${seconds(f.deadline_in_seconds)}, after ${number(Math.round(f.deadline_in_jobs))} more jobs.`;
  }
  setText($("#sentence"), [text, ...warnings.map((w) => w[0].toUpperCase() + w.slice(1) + ".")].join(" "));
  document.title = [["warn", "bad"].includes(cls) ? f.mode : "", host, "pilotfish"].filter(Boolean).join(" – ");
}

// tiles are twelve, so that each row of two, three, four or six is full.
function tiles(now) {
  const minute = now.fleet.windows[0];
  const all = minute.all;
  const lost = all.partial + all.absent;
  const eligible = now.upstreams.filter((u) => u.eligible).length;
  const time = (s) => (s ? seconds(s) : "–");
  const part = (n, of) => (of ? percent(n / of) : "–");
  const shadow = all.complete && !all.data.jobs ? "no job names a project" : now.shadow ? `${now.shadow}: ${part(all.data.shadow_found, all.data.shadowed)}` : "selection.shadow is off";
  const c = now.capacity;
  // Title, value, class, note, tooltip.
  const list = [
    ["jobs each second", minute.covered_seconds ? number(all.jobs / minute.covered_seconds) : "0", "", `${number(all.jobs)} in a minute`, "Jobs that ended in the last minute, without those refused as invalid or given up by their submitters"],
    ["found their data", part(all.data.found, all.data.jobs), "", shadow, "Share of the jobs of the last minute that found their project's data at their upstream. Below it: the share whose data was at the upstream that selection.shadow would have taken. The data lies where the policy in force put it"],
    ["first byte, median", time(all.first_byte_seconds.p50), "", `last byte ${time(all.last_byte_seconds.p50)}`, "From a job's arrival to the first byte of its response, in the last minute"],
    ["first byte, p99", time(all.first_byte_seconds.p99), "", `last byte ${time(all.last_byte_seconds.p99)}`, "99 of 100 jobs of the last minute got their first byte in this time"],
    ["at upstreams", number(now.in_flight), "", "jobs now", "Jobs of this sidecar that upstreams have now"],
    ["waiting here", number(now.waiting), now.waiting ? "warn" : "", "jobs now", "Jobs in this sidecar's queue: no upstream may take them"],
    ["complete", part(all.complete, all.jobs), all.complete < all.jobs ? "bad" : "", `of ${number(all.jobs)} jobs`, "Jobs of the last minute with a whole response of a status below 500"],
    ["failed", number(all.failed), all.failed ? "bad" : "", "in a minute", "Jobs with a whole response of a status of 500 or more"],
    ["lost", number(lost), lost ? "bad" : "", "in a minute", "Jobs with a response in part or none"],
    ["limited", number(all.limited), all.limited ? "warn" : "", "in a minute", "Jobs refused with 429 because their project was at its limit"],
    ["upstreams eligible", `${eligible} of ${now.upstreams.length}`, eligible < now.upstreams.length ? "bad" : "", eligible < now.upstreams.length ? `${now.upstreams.length - eligible} not` : "all", "Upstreams that may get jobs now"],
    ["fleet full", c && !c.never_full ? Math.round(100 * c.full) + " %" : "–", c?.full > 1 ? "bad" : "", c && !c.never_full ? `busiest minute ${Math.round(100 * c.full_in_busiest_minute)} %` : "not known", "Cores that jobs needed in the last minute, over those that there are"],
  ];
  const box = $("#tiles");
  list.forEach(([title, text, cls, note, hint], i) => {
    const tile = box.children[i] ?? box.appendChild(element("div", "", element("dt", ""), element("dd", ""), element("dd", "note")));
    setText(tile.children[0], title);
    setText(tile.children[1], text);
    setClass(tile.children[1], cls);
    setText(tile.children[2], note);
    if (tile.title !== hint) tile.title = hint;
  });
}

const figure = (word, cls = "") => ({ title: word, text: (w) => number(w[word]), cls: (w) => (w[word] ? cls : "") });
const quantile = (of, p) => ({ title: `${of} byte ${p}`, text: (w) => (w[of + "_byte_seconds"][p] ? seconds(w[of + "_byte_seconds"][p]) : "–") });
const windowColumns = [
  { title: "last", left: true, text: (w) => `${w.minutes} min` },
  { title: "priority", left: true, text: (w) => w.priority },
  figure("jobs"), figure("complete"), figure("failed", "bad"), figure("partial", "bad"), figure("absent", "bad"), figure("limited", "warn"),
  { title: "found data", text: (w) => (w.data.jobs ? percent(w.data.found / w.data.jobs) : "–"), hint: "Share of the jobs that found their project's data at their upstream" },
  quantile("first", "p50"), quantile("first", "p90"), quantile("first", "p99"), quantile("last", "p50"), quantile("last", "p99"),
];

function windows(now) {
  const rows = now.fleet.windows.flatMap((w) => ["high", "low"].map((priority) => ({ ...w[priority], priority, minutes: w.seconds / 60 })));
  fill($("#windows"), windowColumns, rows);
}

const count = (n, thing) => `${number(n)} ${thing}${n === 1 ? "" : "s"}`;

// costs lists what the projects with the highest costs cost in the last hour.
function costs(list) {
  const named = list.filter((c) => !c.rest).slice(0, 4);
  const others = list.filter((c) => !named.includes(c)).reduce((sum, c) => sum + c.cost, 0);
  const all = named.map((c) => `${c.project || "no project"} ${number(c.cost)} (${count(c.jobs, "job")})`).concat(others ? [`all others ${number(others)}`] : []);
  return all.length ? ` In the last hour: ${all.join(", ")}.` : "";
}

// capacity shows how full the fleet is, and how many upstreams it needs.
function capacity(now) {
  const c = now.capacity;
  const idle = !now.warnings && now.in_flight + now.waiting + now.fleet.windows[0].all.jobs === 0 && now.upstreams.length && now.upstreams.every((u) => u.eligible);
  const extra = (c?.upstreams_for_target ? ` ${number(c.upstreams_for_target)} would keep the target.` : "") + (c?.cost_per_job ? ` A job costs ${number(c.cost_per_job)}.${costs(c.project_costs ?? [])}` : "");
  const prefix = idle ? "The fleet is healthy and idle: every upstream is eligible, and no job ended in the last minute. " : "";
  setText($("#advice"), prefix + (!c ? (idle ? "" : "Too few jobs were seen.") : c.never_full ? `The queue did not grow with ${number(c.cores)} jobs at the upstreams at one time, and ${number(c.jobs_per_second)} each second. How many they can process is unknown, because they report no cores.` + extra : `${count(c.upstreams, "upstream")} can do ${number(c.jobs_per_second)} jobs each second, of ${seconds(c.core_seconds_per_job)} on a core. ` +
    `The fleet was ${Math.round(100 * c.full)} % full in the last minute, and ${Math.round(100 * c.full_in_busiest_minute)} % in the busiest of the last ${seconds(c.covered_seconds)}. ` +
    `${number(c.upstreams_needed)} would serve every job of that minute at once.` + extra));
}

const named = [
  { title: "project", left: true, text: (j) => j.project || "–", cls: () => "name" },
  { title: "session", left: true, text: (j) => j.session || "–", cls: () => "name" },
  { title: "job", left: true, text: (j) => j.id, cls: () => "name" },
  { title: "priority", left: true, text: (j) => j.priority, cls: () => "short" },
];

// happened lists the attempts with their errors. Some errors start with "dial tcp", the address again and "connect".
function happened(f) {
  const error = (a) => a.error?.split(a.upstream + ": ").pop().replace(/^connect: /, "");
  const attempts = f.attempts.map((a) => `${a.upstream}: ${error(a) ?? a.outcome.replaceAll("_", " ")}`);
  return attempts.concat(f.error && !f.attempts.some(error) ? f.error : []).join("; ");
}

const failureColumns = [
  { title: "time", left: true, text: (f) => clock(f.at), cls: () => "short" },
  { title: "outcome", left: true, text: (f) => f.outcome.replaceAll("_", " ") + (f.status ? ` (${f.status})` : ""), cls: () => "short bad" },
  { title: "after", text: (f) => seconds(f.total_seconds) },
  { title: "what happened", left: true, text: happened, cls: () => "wide" },
  ...named,
];
const openColumns = [
  ...named,
  { title: "age", text: (o) => seconds(o.seconds) },
  { title: "upstream", left: true, text: (o) => o.upstream, cls: () => "name" },
  { title: "there for", text: (o) => seconds(o.upstream_seconds) },
];
const projectColumns = [
  { title: "project", left: true, text: (p) => p.name },
  { title: "in flight", hint: "At upstreams, and how many may be", text: (p) => p.in_flight + (p.limit ? " of " + p.limit : "") },
  { title: "waiting", hint: "In this sidecar's queue", text: (p) => number(p.waiting), cls: (p) => (p.waiting ? "bad" : "") },
];

const fewFailures = 5;
let allFailures = false;

function failures(list) {
  $("#trouble").hidden = list.length === 0;
  fill($("#failures"), failureColumns, allFailures ? list : list.slice(0, fewFailures));
  $("#more").hidden = list.length <= fewFailures;
  setText($("#more"), allFailures ? "show fewer" : `show ${list.length - fewFailures} more`);
}

const last = {};

// changed reports whether a part of the page must be written anew.
function changed(name, value) {
  const text = JSON.stringify(value);
  const was = last[name];
  last[name] = text;
  return was !== text;
}

// Lost is a request without a usable response.
class Lost extends Error {}

async function get(path) {
  try {
    const response = await fetch(path);
    if (response.ok) return await response.json();
    throw new Error(`status ${response.status}`);
  } catch (e) {
    throw new Lost(`${path}: ${e.message}`);
  }
}

const interval = 2000; // milliseconds
let drawn = null; // what is shown
let shownEvents = -1; // how many there were when the shown ones were read

// about shows what only a reload or a restart changes.
function about(a) {
  host = a.host;
  setText($("#who"), `${host} ${a.ports.join(", ")}`);
  setText($("#build"), `pilotfish ${a.version}, ${a.go}, since ${new Date(a.started).toLocaleString()}`);
  setText($("#configuration"), a.configuration);
  setWrite(a.write);
}

// show writes the page.
async function show(now) {
  drawn = now;
  const fresh = due(Date.parse(now.at)), more = now.events !== shownEvents;
  const [words, figures, happened] = await Promise.all([fresh && get("/api/about"), fresh && get("/api/history"), more && get("/api/events")]);
  if (fresh) { // nothing is shown before all is read
    about(words);
    load(figures);
  }
  if (more) {
    shownEvents = now.events;
    drawEvents(happened.events);
    markEvents(happened.events);
  }
  $("#shadow-key").hidden = !now.shadow;
  setText($("#shadow-key"), `with ${now.shadow}`);
  header(now);
  tiles(now);
  drawPicture(now, interval);
  windows(now);
  capacity(now);
  setUpstreams(now.upstreams);
  fill($("#open"), openColumns, now.open);
  if (changed("projects", now.projects)) fill($("#projects"), projectColumns, now.projects);
  if (changed("failures", now.failures)) failures(now.failures);
  document.body.dataset.at = now.at; // the tests wait for it
}

// follow shows the state of the moment again and again, unless the page is hidden.
async function follow() {
  try {
    if (!document.hidden) await show(await get("/api/now"));
    connected("live", false);
  } catch (e) {
    if (e instanceof Lost) connected(`no connection since ${clock(drawn?.at ?? Date.now())}; trying again`, true);
    else {
      connected(`this page has a fault: ${e.message}; reload it`, true);
      console.error(e);
    }
  }
  setTimeout(follow, interval);
}

function connected(text, lost) {
  setText($("#link"), text);
  setClass($("#link"), lost ? "link lost" : "link");
}

$("#more").addEventListener("click", () => {
  allFailures = !allFailures;
  failures(drawn.failures);
});
follow();
