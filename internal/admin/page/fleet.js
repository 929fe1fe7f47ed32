// The table of upstreams, and the list of those that fail. Those that need somebody to look
// come first.

import { $, element, fill, heads, number, seconds, setClass, setText } from "./dom.js";

const shownFailing = 10;

// state is what keeps an upstream from being eligible, and what is odd about it.
function state(u) {
  const odd = [];
  if (u.suspect && !u.why) odd.push("suspect: " + u.suspect);
  if (u.implausible) odd.push("implausible: " + u.implausible);
  if (u.slow) odd.push("slow: " + u.slow);
  return [u.why || "eligible", ...odd].join("; ");
}

const modes = { unknown: 0, steady: 1, "queue grows": 2, "attempts fail": 3 };
const trouble = (u) => (!u.eligible ? 0 : u.minute_failed_attempts > 0 ? 1 : u.suspect || u.implausible || u.slow ? 2 : 3);
const bad = (n) => (n > 0 ? "bad" : "");
const reported = (u, text) => (u.report_age_seconds < 0 ? "–" : text);

// Each column: its title, what it sorts by, its text, and its class.
const columns = [
  { title: "upstream", left: true, by: (u) => u.address, text: (u) => u.address },
  { title: "state", left: true, by: trouble, text: state, cls: (u) => "wide " + ["bad", "bad", "warn", "ok"][u.eligible ? Math.max(2, trouble(u)) : 0] },
  { title: "mode", left: true, by: (u) => modes[u.mode], text: (u) => u.mode, cls: (u) => u.mode.replace(" ", "-") },
  { title: "jobs", by: (u) => u.jobs, text: (u) => number(u.jobs), hint: "Jobs that are there now, of all sidecars" },
  { title: "own", by: (u) => u.in_flight, text: (u) => number(u.in_flight), hint: "Jobs there that this sidecar sent" },
  { title: "stalled", by: (u) => u.stalled, text: (u) => reported(u, number(u.stalled)), cls: (u) => (u.stalled > 0 ? "warn" : ""), hint: "Joblets that are ready and wait for a core" },
  { title: "wait", by: (u) => u.wait_seconds, text: (u) => (u.wait_seconds < 0 ? "–" : seconds(u.wait_seconds)), cls: (u) => (u.wait_seconds > 0 ? "warn" : ""), hint: "How long a job that came now would wait for a core" },
  { title: "attempts/min", by: (u) => u.minute_attempts, text: (u) => number(u.minute_attempts) },
  { title: "failed/min", by: (u) => u.minute_failed_attempts, text: (u) => number(u.minute_failed_attempts), cls: (u) => bad(u.minute_failed_attempts), hint: "Attempts without a whole response of a status below 500. Another upstream may have answered those jobs" },
  { title: "first byte", by: (u) => u.latency_seconds, text: (u) => (u.latency_seconds ? seconds(u.latency_seconds) : "–"), hint: "A moving average that follows peaks at once" },
  { title: "rate", by: (u) => u.rate, text: (u) => (u.rate ? number(u.rate) + "/s" : "–"), hint: "Jobs that it completes each second when all its cores are busy" },
  { title: "cores", by: (u) => u.cores, text: (u) => (u.cores ? (u.cores_busy >= 0 ? number(u.cores_busy) + " of " : "") + u.cores : "–"), hint: "How many of its cores are busy" },
  { title: "cached", by: (u) => u.cached_projects, text: (u) => number(u.cached_projects) + (u.assumed_projects ? " +" + u.assumed_projects : ""), hint: "Projects that it lists, and those that it is taken to have" },
  { title: "report", by: (u) => u.report_age_seconds, text: (u) => reported(u, seconds(u.report_age_seconds)), cls: (u) => (u.report_fresh ? "" : "warn"), hint: "Age of its last report" },
];

let upstreams = [];
let sort = { by: trouble, down: false };

const table = $("#fleet");
const find = $("#find");

function titles() {
  heads(table, columns, (c) => {
    if (!c.by) return c.title;
    const button = element("button", "", c.title);
    button.addEventListener("click", () => {
      sort = { by: c.by, down: sort.by === c.by ? !sort.down : false };
      titles();
      table.tHead.rows[0].cells[columns.indexOf(c)].firstChild.focus();
      show();
    });
    return button;
  });
  columns.forEach((c, i) => {
    if (c.by && c.by === sort.by) table.tHead.rows[0].cells[i].ariaSort = sort.down ? "descending" : "ascending";
  });
}

async function drain(address, on, button) {
  if (!confirm(on ? `Give ${address} no new jobs?` : `Let ${address} take jobs again?`)) return;
  button.disabled = true;
  try {
    const reply = await fetch(`/api/upstreams/${encodeURIComponent(address)}/drain`, { method: on ? "POST" : "DELETE" });
    if (!reply.ok) alert((await reply.json()).error ?? reply.statusText);
  } catch (err) {
    alert(String(err));
  }
  button.disabled = false;
}

const buttons = new Map(); // by address: a new one would lose the focus

function button(u) {
  let b = buttons.get(u.address);
  if (!b) {
    b = element("button", "act");
    b.addEventListener("click", () => drain(u.address, b.textContent === "drain", b));
    buttons.set(u.address, b);
  }
  setText(b, u.drained ? "undrain" : "drain");
  return b;
}

// show puts the rows that are looked for in their order.
function show() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = upstreams.filter((u) => {
    const text = `${u.address} ${state(u)} ${u.mode}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });
  wanted.sort((a, b) => {
    const [x, y] = [sort.by(a), sort.by(b)];
    const order = x < y ? -1 : x > y ? 1 : a.address < b.address ? -1 : 1;
    return sort.down ? -order : order;
  });
  fill(table, columns, wanted);
  const n = upstreams.length;
  setText($("#shown"), wanted.length === n ? `${n} upstream${n === 1 ? "" : "s"}` : `${wanted.length} of ${n}`);
}

// failing lists the upstreams that get no jobs, or at which attempts fail.
function failing() {
  const list = upstreams.filter((u) => trouble(u) < 2);
  const lines = list.slice(0, shownFailing).map((u) => {
    const attempts = u.minute_failed_attempts ? `${number(u.minute_failed_attempts)} of ${number(u.minute_attempts)} attempts in a minute failed` : "";
    return element("li", "", place(u.address), ": " + [u.why, attempts].filter(Boolean).join("; "));
  });
  if (list.length > lines.length) lines.push(element("li", "", `and ${list.length - lines.length} more, first in the table below`));
  if (!lines.length) lines.push(element("li", "quiet", upstreams.length ? "Each upstream is eligible, and no attempt failed in the last minute." : "No upstream is known."));
  const box = $("#failing");
  if (box.textContent !== lines.map((l) => l.textContent).join("")) box.replaceChildren(...lines);
  setClass(box, list.length ? "bad" : "");
}

// setUpstreams shows the upstreams as they are now.
export function setUpstreams(list) {
  upstreams = list;
  show();
  failing();
}

// place is a link that finds an upstream.
function place(address, cls = "") {
  const link = element("a", cls, address);
  link.href = "#upstreams";
  link.addEventListener("click", (e) => {
    e.preventDefault();
    find.value = address;
    show();
    $("#upstreams").scrollIntoView();
    find.focus();
  });
  return link;
}

const byHand = { title: "by hand", text: button };

// setWrite adds the buttons that drain, or takes them away.
export function setWrite(on) {
  if (on === columns.includes(byHand)) return;
  if (on) columns.push(byHand);
  else columns.pop();
  titles();
  table.tBodies[0].replaceChildren(); // rows have as many cells as there were columns
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
titles();
