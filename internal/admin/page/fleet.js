// The table of upstreams: one row each, which stays where its upstream stays, so that
// what did not change is not touched.

import { $, element, number, seconds, setClass, setText } from "./dom.js";
import { spark } from "./charts.js";

// state is what keeps an upstream from being eligible, and what is odd about it.
function state(u) {
  const odd = [];
  if (u.suspect && !u.why) odd.push("suspect: " + u.suspect);
  if (u.implausible) odd.push("implausible: " + u.implausible);
  return [u.why || "eligible", ...odd].join("; ");
}

const modes = { unknown: 0, flat: 1, growing: 2, losing: 3 };

// Each column: its title, what it sorts by, its text, and its class.
const columns = [
  { title: "upstream", by: (u) => u.address, text: (u) => u.address, cls: () => "text" },
  { title: "state", by: state, text: state, cls: (u) => "text " + (!u.eligible ? "bad" : u.suspect || u.implausible ? "warn" : "ok") },
  { title: "mode", by: (u) => modes[u.mode], text: (u) => u.mode, cls: (u) => "text " + u.mode },
  { title: "jobs", by: (u) => u.jobs, text: (u) => number(u.jobs) },
  { title: "last hour", by: (u) => u.jobs, spark: true },
  { title: "own", by: (u) => u.in_flight, text: (u) => number(u.in_flight), hint: "Jobs there that this sidecar sent" },
  { title: "running", by: (u) => u.running, text: (u) => (u.report_age_seconds < 0 ? "–" : number(u.running)) },
  { title: "stalled", by: (u) => u.stalled, text: (u) => (u.report_age_seconds < 0 ? "–" : number(u.stalled)), cls: (u) => (u.stalled > 0 ? "warn" : ""), hint: "Joblets that are ready and wait for a core" },
  { title: "wait", by: (u) => u.wait_seconds, text: (u) => (u.wait_seconds < 0 ? "–" : seconds(u.wait_seconds)), cls: (u) => (u.wait_seconds > 0 ? "warn" : ""), hint: "How long a job that came now would wait for a core" },
  { title: "first byte", by: (u) => u.latency_seconds, text: (u) => (u.latency_seconds ? seconds(u.latency_seconds) : "–"), hint: "A moving average that follows peaks at once" },
  { title: "jobs/min", by: (u) => u.minute_jobs, text: (u) => number(u.minute_jobs) },
  { title: "lost/min", by: (u) => u.minute_lost, text: (u) => number(u.minute_lost), cls: (u) => (u.minute_lost > 0 ? "bad" : "") },
  { title: "rate", by: (u) => u.rate, text: (u) => (u.rate ? number(u.rate) + "/s" : "–"), hint: "Jobs that it completes each second when all its cores are busy" },
  { title: "cores", by: (u) => u.cores, text: (u) => (u.cores ? (u.cores_busy >= 0 ? number(u.cores_busy) + " of " : "") + u.cores : "–") },
  { title: "cached", by: (u) => u.cached_projects, text: (u) => number(u.cached_projects) + (u.assumed_projects ? " +" + u.assumed_projects : ""), hint: "Projects that it lists, and those that it is taken to have" },
  { title: "report", by: (u) => u.report_age_seconds, text: (u) => (u.report_age_seconds < 0 ? "none" : seconds(u.report_age_seconds)), cls: (u) => (u.report_fresh ? "" : "warn"), hint: "Age of its last report" },
  { title: "breaker", by: (u) => u.breaker.state, text: (u) => String(u.breaker.state).replace("_", " "), cls: (u) => "text " + (u.breaker.state === "closed" ? "" : "bad") },
];

const rows = new Map(); // by address
let upstreams = [];
let sort = { column: 0, down: false };
let write = false;

const body = $("#fleet tbody");
const head = $("#fleet thead tr");
const find = $("#find");

function heads() {
  head.replaceChildren(...columns.map((c, i) => {
    const button = element("button", "", c.title);
    if (c.hint) button.title = c.hint;
    button.addEventListener("click", () => {
      sort = { column: i, down: sort.column === i ? !sort.down : false };
      heads();
      head.cells[i].firstChild.focus();
      show();
    });
    const th = element("th", i < 3 || c.title === "breaker" ? "text" : "", button);
    th.scope = "col";
    if (sort.column === i) th.ariaSort = sort.down ? "descending" : "ascending";
    return th;
  }));
  if (write) head.append(element("th", "", "by hand"));
}

function newRow(address) {
  const row = element("tr", "");
  row.dataset.upstream = address;
  for (const c of columns) {
    const cell = row.insertCell();
    cell.dataset.label = c.title;
    if (c.spark) {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("class", "spark");
      svg.setAttribute("viewBox", "0 0 60 20");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.append(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
      cell.append(svg);
    }
  }
  if (write) {
    const button = element("button", "act", "");
    button.addEventListener("click", () => drain(address, button));
    row.insertCell().append(button);
    row.lastChild.dataset.label = "by hand";
  }
  return row;
}

async function drain(address, button) {
  const drained = button.textContent === "undrain";
  if (!drained && !confirm(`Give ${address} no new jobs?`)) return;
  button.disabled = true;
  const reply = await fetch(`/api/upstreams/${encodeURIComponent(address)}/drain`, { method: drained ? "DELETE" : "POST" });
  button.disabled = false;
  if (!reply.ok) alert((await reply.json()).error ?? reply.statusText);
}

function update(row, u) {
  columns.forEach((c, i) => {
    const cell = row.cells[i];
    if (c.spark) {
      const line = cell.firstChild.firstChild;
      const points = spark(u.address);
      if (line.getAttribute("points") !== points) line.setAttribute("points", points);
      return;
    }
    setText(cell, c.text(u));
    setClass(cell, (c.cls?.(u) ?? "").trim());
  });
  if (write) {
    const button = row.cells[columns.length].firstChild;
    setText(button, u.drained ? "undrain" : "drain");
  }
}

// show puts the rows that are looked for in their order.
function show() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const by = columns[sort.column].by;
  const wanted = upstreams.filter((u) => {
    const text = `${u.address} ${state(u)} ${u.mode} ${u.breaker.state}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });
  wanted.sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    const order = x < y ? -1 : x > y ? 1 : a.address < b.address ? -1 : 1;
    return sort.down ? -order : order;
  });
  wanted.forEach((u, i) => {
    const row = rows.get(u.address);
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null);
  });
  while (body.rows.length > wanted.length) body.rows[body.rows.length - 1].remove();
  const n = upstreams.length;
  setText($("#shown"), wanted.length === n ? `${n} upstream${n === 1 ? "" : "s"}` : `${wanted.length} of ${n}`);
}

// setUpstreams shows the upstreams as they are now.
export function setUpstreams(list) {
  upstreams = list;
  const there = new Set(list.map((u) => u.address));
  for (const [address, row] of rows) {
    if (!there.has(address)) {
      row.remove();
      rows.delete(address);
    }
  }
  for (const u of list) {
    let row = rows.get(u.address);
    if (!row) rows.set(u.address, (row = newRow(u.address)));
    update(row, u);
  }
  show();
}

// setFind looks for an upstream, for the links of other tables.
export function setFind(text) {
  find.value = text;
  show();
  $("#upstreams").scrollIntoView();
  find.focus();
}

// allowWrite adds the buttons that drain; it is called before there are rows.
export function allowWrite() {
  write = true;
  heads();
}

find.addEventListener("input", show);
addEventListener("keydown", (e) => {
  const typing = e.target.closest?.("input, select, textarea");
  if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
    e.preventDefault();
    find.focus();
  }
  if (e.key === "Escape" && e.target === find) {
    find.value = "";
    show();
  }
});
heads();
