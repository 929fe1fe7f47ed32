// Helpers that write text and numbers. Nothing here writes HTML: what submitters and
// upstreams say is only ever set as text.

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

// seconds writes a time as people say it: 250 ms, 1.5 s, 3 min, 2 h.
export function seconds(s) {
  if (s === 0) return "0 s";
  if (s < 0.9995) return number(s * 1000) + " ms";
  if (s < 99.5) return number(s) + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  return number(s / 3600) + " h";
}

export const percent = (share) => (share === 1 ? "100 %" : (Math.floor(share * 1000) / 10).toFixed(1) + " %");

export const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });

// fill makes the rows of a table body be as many as there are items, and writes each.
// Without an item it says none. cells returns [text, class] or [node, class] for each cell.
export function fill(body, items, labels, cells) {
  if (items.length === 0) {
    const cell = element("td", "text quiet", "none");
    cell.colSpan = 20;
    body.replaceChildren(element("tr", "", cell));
    return;
  }
  if (body.rows[0]?.cells[0].colSpan > 1) body.replaceChildren();
  while (body.rows.length > items.length) body.deleteRow(-1);
  items.forEach((item, i) => {
    const row = body.rows[i] ?? body.insertRow();
    cells(item).forEach(([content, cls = ""], k) => {
      const cell = row.cells[k] ?? row.insertCell();
      setClass(cell, cls);
      if (labels) cell.dataset.label = labels[k];
      if (content instanceof Node) cell.replaceChildren(content);
      else setText(cell, content);
    });
  });
}
