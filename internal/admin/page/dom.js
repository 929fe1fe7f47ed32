// Helpers that write text and numbers. Nothing here writes HTML: what submitters and
// upstreams report is only ever set as text.

export const $ = (selector) => document.querySelector(selector);

// element makes an element with a class and children: elements, or text.
export function element(name, cls, ...children) {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
}

// setText changes a node only where it must, so that 300 rows stay quick.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setClass(node, cls) {
  if (node.className !== cls) node.className = cls;
}

export function number(n) {
  if (n === 0) return "0";
  const a = Math.abs(n);
  if (a >= 1000) return Math.round(n).toLocaleString("en");
  if (a >= 100) return n.toFixed(0);
  if (a >= 10) return trim(n.toFixed(1));
  return trim(n.toPrecision(2));
}

const trim = (text) => text.includes("e") ? text : text.replace(/\.?0+$/, (z) => (z.startsWith(".") ? "" : z));

// seconds writes a time with its unit: 250 ms, 1.5 s, 3 min, 2 h.
export function seconds(s) {
  if (s === 0) return "0 s";
  if (s < 0.9995) return number(s * 1000) + " ms";
  if (s < 99.5) return number(s) + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  return number(s / 3600) + " h";
}

// The modes of the fleet and of upstreams with their classes, the worst last. The page names them only here.
const levels = new Map([["unknown", ""], ["steady", "ok"], ["queue grows", "warn"], ["attempts fail", "bad"], ["jobs fail", "bad"]]);

// level is the class of a mode.
export const level = (mode) => levels.get(mode) ?? "";

// severity orders modes.
export const severity = (mode) => [...levels.keys()].indexOf(mode);

export const percent = (share) => (share === 1 ? "100 %" : (Math.floor(share * 1000) / 10).toFixed(1) + " %");

// clock writes a time, with the date if that is not today.
export function clock(at) {
  const then = new Date(at);
  const today = then.toDateString() === new Date().toDateString();
  return today ? then.toLocaleTimeString([], { hour12: false }) : then.toLocaleString([], { hour12: false });
}

// heads writes the titles of a table's columns, and returns its body. A column has a title,
// the text of a cell, and where it has them a class, a hint, and a word to sort by.
export function heads(table, columns, title = (c) => c.title) {
  const cells = columns.map((c) => {
    const th = element("th", c.left ? "text" : "", title(c));
    th.scope = "col";
    if (c.hint) th.title = c.hint;
    return th;
  });
  (table.tHead ?? table.createTHead()).replaceChildren(element("tr", "", ...cells));
  return table.tBodies[0] ?? table.createTBody();
}

// fill makes a table have a row for each item, and touches only what has changed. Without an
// item it says none.
export function fill(table, columns, items) {
  const body = table.tBodies[0] ?? heads(table, columns);
  if (items.length === 0) {
    const cell = element("td", "text quiet", "none");
    cell.colSpan = columns.length;
    body.replaceChildren(element("tr", "", cell));
    return;
  }
  if (body.rows[0]?.cells[0].colSpan > 1) body.replaceChildren();
  while (body.rows.length > items.length) body.deleteRow(-1);
  items.forEach((item, i) => {
    const row = body.rows[i] ?? body.insertRow();
    columns.forEach((c, k) => {
      const cell = row.cells[k] ?? row.insertCell();
      const content = c.text(item);
      setClass(cell, ((c.left ? "text " : "") + (c.cls?.(item) ?? "")).trim());
      if (cell.dataset.label !== c.title) cell.dataset.label = c.title;
      if (!(content instanceof Node)) setText(cell, content);
      else if (cell.firstChild !== content) cell.replaceChildren(content);
    });
  });
}
