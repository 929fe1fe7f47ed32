// The picture of the fleet: a column for each upstream with its queue, its cores and the projects whose data it has. Each
// job that ended lately flies to its column.

import { $, element, number, setClass, setText } from "./dom.js";

const mostColumns = 16;
const mostSquares = 16; // of cores, and of jobs in the queue
const mostProjects = 8; // that a column names
const mostFlights = 30; // at one time
const flight = 900; // milliseconds
const glow = 3000; // milliseconds that a project is marked after a job was sent

const still = matchMedia("(prefers-reduced-motion: reduce)");
const columns = new Map(); // by address
const numeric = new Intl.Collator("en", { numeric: true });
let last = null; // the number of the last landing that was shown
let flights = 0;

// short leaves out what all addresses have in common: host or port.
function short(addresses) {
  const parts = addresses.map((a) => [a.slice(0, a.lastIndexOf(":")), a.slice(a.lastIndexOf(":"))]);
  const one = (i) => parts.every((p) => p[i] === parts[0][i]);
  if (parts.length > 1 && one(0)) return new Map(addresses.map((a, i) => [a, parts[i][1]]));
  if (parts.length > 1 && one(1)) return new Map(addresses.map((a, i) => [a, parts[i][0]]));
  return new Map(addresses.map((a) => [a, a]));
}

// chosen are the upstreams that get a column: all of a small fleet, otherwise those of the last jobs.
function chosen(now) {
  const latest = new Map(now.landings.map((l) => [l.upstream, l.number]));
  const of = (u) => latest.get(u.address) ?? (columns.has(u.address) ? 0 : -1);
  return [...now.upstreams].sort((a, b) => of(b) - of(a) || b.jobs - a.jobs).slice(0, mostColumns)
    .sort((a, b) => numeric.compare(a.address, b.address));
}

// squares gives a box this many squares; the first ones get a class.
function squares(box, all, marked, cls) {
  while (box.children.length > all) box.lastChild.remove();
  while (box.children.length < all) box.append(element("i"));
  [...box.children].forEach((square, i) => setClass(square, i < marked ? cls : ""));
}

function column(address) {
  let c = columns.get(address);
  if (c) return c;
  c = { name: element("b"), state: element("p", "state"), queue: element("p", "squares queue"), cores: element("p", "squares"), load: element("p", "load"), data: element("ul"), chips: new Map() };
  c.box = element("div", "column", c.name, c.state, c.queue, c.cores, c.load, c.data);
  columns.set(address, c);
  return c;
}

// brief is a project's name, shortened to the width of a column.
const brief = (project) => (project.length > 12 ? project.slice(0, 11) + "…" : project);

// chip is the mark of a project in a column.
function chip(c, project) {
  let mark = c.chips.get(project);
  if (!mark) c.chips.set(project, (mark = element("li", "", brief(project))));
  mark.title = "has the data of project " + project;
  return mark;
}

function drawColumn(u, name, projects) {
  const c = column(u.address);
  setText(c.name, name);
  c.box.dataset.address = u.address;
  c.box.title = `${u.address}: ${u.status}`;
  setClass(c.box, "column" + (u.eligible ? "" : " out"));
  setText(c.state, u.eligible ? "" : u.status);
  const cores = u.cores || Math.min(mostSquares, u.in_flight);
  const running = u.cores ? Math.min(u.cores, Math.round(u.report_fresh && u.cores_busy >= 0 ? u.cores_busy : u.jobs)) : u.in_flight;
  const waiting = Math.round((u.report_fresh && u.stalled) || Math.max(0, u.jobs - (u.cores || u.jobs)));
  squares(c.queue, Math.min(mostSquares, waiting), mostSquares, "busy");
  squares(c.cores, Math.min(mostSquares, cores), Math.ceil((running * Math.min(mostSquares, cores)) / Math.max(1, cores)), "busy");
  setText(c.load, (u.cores ? `${number(running)} of ${u.cores} cores` : `${number(running)} jobs`) + (waiting ? `, ${number(waiting)} wait` : ""));
  const named = projects.slice(0, mostProjects);
  for (const [project, mark] of c.chips) if (!named.includes(project) && !mark.className) c.chips.delete(project);
  const all = u.cached_projects + u.assumed_projects;
  const marks = [...new Set([...named, ...c.chips.keys()])].sort(numeric.compare).map((p) => chip(c, p));
  const rest = all - marks.length;
  c.more ??= element("li", "more");
  setText(c.more, rest > 0 ? `and ${number(rest)} more` : marks.length ? "" : "no data yet");
  const list = c.more.textContent ? [...marks, c.more] : marks;
  if (list.length !== c.data.children.length || list.some((e, i) => c.data.children[i] !== e)) c.data.replaceChildren(...list);
  return c.box;
}

// words describe a landing.
function words(l, name, holders) {
  const to = name.get(l.upstream) ?? l.upstream, from = name.get(l.from) ?? l.from;
  const others = (holders.get(l.project) ?? []).filter((a) => a !== l.upstream).map((a) => name.get(a) ?? a);
  if (l.moved) return `Project ${l.project}: a job that waited at ${from} moved to ${to}, which was free earlier.`;
  if (l.from) return `Project ${l.project}: the attempt at ${from} failed, and ${to} served the job.`;
  if (l.found) return `Project ${l.project}: ${to} has its data, so the job went there.`;
  if (others.length) return `Project ${l.project}: ${others.slice(0, 2).join(" and ")} has its data, and ${to} fetched it, too.`;
  return `Project ${l.project}: nobody had its data, and ${to} fetched it.`;
}

const kind = (l) => (l.from ? "moved" : l.found ? "found" : "fetched");

// land marks a project in its column.
function land(l) {
  const c = columns.get(l.upstream);
  if (!c?.box.isConnected) return;
  const mark = chip(c, l.project);
  setClass(mark, kind(l));
  if (!mark.isConnected) c.data.prepend(mark);
  clearTimeout(mark.timer);
  mark.timer = setTimeout(() => setClass(mark, ""), glow);
}

// fly shows one landing: a mark goes from the source to its column, by way of the upstream that it was at before.
function fly(l, text) {
  if (kind(l) !== "found" || performance.now() - (fly.notable ?? -Infinity) > glow) setText($("#story"), text);
  if (kind(l) !== "found") fly.notable = performance.now();
  const stage = $("#stage"), to = columns.get(l.upstream);
  if (!to?.box.isConnected) return;
  if (still.matches || flights >= mostFlights) return land(l);
  const origin = stage.getBoundingClientRect();
  const center = (e) => {
    const r = e.getBoundingClientRect();
    return `translate(${r.left - origin.left + r.width / 2}px, ${r.top - origin.top + r.height / 2}px) translate(-50%, -50%)`;
  };
  const before = columns.get(l.from), mark = chip(to, l.project);
  const stops = [$("#source"), ...(before?.box.isConnected ? [before.queue] : []), mark.isConnected ? mark : to.load];
  const job = element("span", "job " + kind(l), brief(l.project));
  job.setAttribute("aria-hidden", "true");
  stage.append(job);
  flights++;
  job.animate(stops.map((s) => ({ transform: center(s) })), { duration: flight * (stops.length - 1), easing: "ease-in-out", fill: "both" })
    .finished.catch(() => {}).then(() => {
      flights--;
      job.remove();
      land(l);
    });
}

// drawPicture shows the fleet, and lets the jobs fly that ended since the last time, over the milliseconds until the next.
export function drawPicture(now, interval) {
  const list = chosen(now);
  const name = short(now.upstreams.map((u) => u.address));
  const holders = new Map(now.holdings.map((h) => [h.project, h.upstreams]));
  const boxes = list.map((u) => drawColumn(u, name.get(u.address), now.holdings.filter((h) => h.upstreams.includes(u.address)).map((h) => h.project)));
  const box = $("#columns");
  if (boxes.length !== box.children.length || boxes.some((b, i) => box.children[i] !== b)) box.replaceChildren(...boxes);
  for (const address of columns.keys()) if (!list.some((u) => u.address === address)) columns.delete(address);
  setText($("#source"), `jobs arrive${now.waiting ? `: ${number(now.waiting)} wait here` : ""}` +
    (list.length < now.upstreams.length ? ` (shown: ${list.length} of ${now.upstreams.length} upstreams)` : ""));
  const fresh = now.landings.filter((l) => last !== null && l.number > last);
  last = now.landings.at(-1)?.number ?? 0;
  fresh.forEach((l, i) => setTimeout(() => fly(l, words(l, name, holders)), (i * interval) / fresh.length));
}
