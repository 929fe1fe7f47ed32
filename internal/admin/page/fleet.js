// The table of upstreams: those that need somebody to look come first, and the others of a large fleet are folded.

import { $, element, fill, heads, level, number, percent, seconds, setText, severity } from "./dom.js";

const foldedFrom = 13; // upstreams: a larger table shows those in trouble
const mostTrouble = 10; // how many of these it shows

const trouble = (u) => (!u.eligible ? 0 : u.minute_failed_attempts > 0 ? 1 : u.suspect || u.implausible || u.slow ? 2 : 3);
const found = (u) => (u.minute_data.jobs ? u.minute_data.found / u.minute_data.jobs : null);
const bad = (n) => (n > 0 ? "bad" : "");
const reported = (u, text) => (u.report_fresh ? text : "–");

// Each column: its title, what it sorts by, its text, and its class.
const columns = [
  { title: "upstream", left: true, by: (u) => u.address, text: (u) => u.address, hint: "Its address, as discovery names it" },
  { title: "state", left: true, by: trouble, text: (u) => u.status, hint: "Whether it gets new jobs, or what speaks against it", cls: (u) => "wide " + ["bad", "bad", "warn", "ok"][u.eligible ? Math.max(2, trouble(u)) : 0] },
  { title: "mode", left: true, by: (u) => severity(u.mode), text: (u) => u.mode, cls: (u) => level(u.mode), hint: "Whether its jobs wait longer and longer, or its attempts fail" },
  { title: "jobs", by: (u) => u.jobs, text: (u) => number(u.jobs), hint: "Jobs that are there now, of all sidecars" },
  { title: "own", by: (u) => u.in_flight, text: (u) => number(u.in_flight), hint: "Jobs there that this sidecar sent" },
  { title: "stalled", by: (u) => u.stalled, text: (u) => reported(u, number(u.stalled)), cls: (u) => (u.stalled > 0 ? "warn" : ""), hint: "Joblets that are ready and wait for a core" },
  { title: "wait", by: (u) => u.wait_seconds, text: (u) => (u.wait_seconds < 0 ? "–" : seconds(u.wait_seconds)), cls: (u) => (u.wait_seconds > 0 ? "warn" : ""), hint: "How long a job that came now would wait for a core" },
  { title: "attempts/min", by: (u) => u.minute_attempts, text: (u) => number(u.minute_attempts), hint: "Attempts that ended there in the last minute" },
  { title: "failed/min", by: (u) => u.minute_failed_attempts, text: (u) => number(u.minute_failed_attempts), cls: (u) => bad(u.minute_failed_attempts), hint: "Attempts without a whole response of a status below 500. Another upstream may have responded to those jobs" },
  { title: "found", by: (u) => found(u) ?? -1, text: (u) => (found(u) === null ? "–" : percent(found(u))), hint: "Share of the jobs of the last minute that found their data there" },
  { title: "first byte", by: (u) => u.latency_seconds, text: (u) => (u.latency_seconds ? seconds(u.latency_seconds) : "–"), hint: "A moving average that follows peaks at once" },
  { title: "rate", by: (u) => u.rate, text: (u) => (u.rate ? number(u.rate) + "/s" : "–"), hint: "Jobs that it completes each second when all its cores are busy" },
  { title: "cores", by: (u) => u.cores, text: (u) => (u.cores ? (u.report_fresh && u.cores_busy >= 0 ? number(u.cores_busy) + " of " : "") + u.cores : "–"), hint: "How many of its cores are busy" },
  { title: "cached", by: (u) => u.cached_projects, text: (u) => number(u.cached_projects) + (u.assumed_projects ? " +" + u.assumed_projects : ""), hint: "Projects that it lists, and those that it is taken to have" },
  { title: "report", by: (u) => u.report_age_seconds, text: (u) => (u.report_age_seconds < 0 ? "–" : seconds(u.report_age_seconds)), cls: (u) => (u.report_fresh ? "" : "warn"), hint: "Age of its last report" },
];

const numeric = new Intl.Collator("en", { numeric: true });
let upstreams = [];
let folded = true;
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
    const text = `${u.address} ${u.status} ${u.mode}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });
  wanted.sort((a, b) => {
    const [x, y] = [sort.by(a), sort.by(b)];
    const order = typeof x === "string" ? 0 : x - y;
    return (sort.down ? -1 : 1) * (order || numeric.compare(a.address, b.address));
  });
  const n = upstreams.length, eligible = upstreams.filter((u) => u.eligible).length;
  const folds = n >= foldedFrom && !words.length;
  fill(table, columns, folds && folded ? wanted.filter((u) => trouble(u) < 3).slice(0, mostTrouble) : wanted);
  setText($("#shown"), words.length ? `${wanted.length} of ${n}` : `${eligible} eligible` + (eligible < n ? `, ${n - eligible} not` : ""));
  $("#fold").hidden = !folds;
  setText($("#fold"), folded ? `show all ${n}` : "show only those in trouble");
}

// setUpstreams shows the upstreams as they are now.
export function setUpstreams(list) {
  upstreams = list;
  document.body.classList.toggle("trouble", list.some((u) => trouble(u) < 2));
  show();
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
$("#fold").addEventListener("click", () => {
  folded = !folded;
  show();
});
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
