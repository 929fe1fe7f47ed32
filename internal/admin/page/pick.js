// The form that shows where a job would go.

import { $, element, number, seconds } from "./dom.js";

const parts = ["wait", "fetch", "placement", "stop"];
const shown = 20; // bars

function bar(cost, top) {
  const line = element("div", "bar");
  line.setAttribute("aria-hidden", "true");
  for (const p of parts) {
    const piece = element("span", p);
    piece.style.width = (100 * Math.max(0, cost[p])) / top + "%";
    piece.title = `${p} ${seconds(cost[p])}`;
    line.append(piece);
  }
  return line;
}

const text = (cost) => `${number(cost.total)} s` + parts.filter((p) => cost[p] > 0).map((p, i) => (i ? ", " : " = ") + `${p} ${number(cost[p])}`).join("");

function answer(reply) {
  const box = element("div", "bars");
  const top = Math.max(1e-9, ...reply.ranking.map((r) => r.cost?.total ?? 0));
  for (const r of reply.ranking.slice(0, shown)) {
    box.append(element("span", r.picked ? "picked" : "", r.address + (r.picked ? " ← here" : "")));
    box.append(r.cost ? bar(r.cost, top) : element("span"));
    box.append(element("span", "quiet", (r.cost ? text(r.cost) : `${number(r.jobs)} jobs`) + `, ${r.cache === "none" ? "not cached" : r.cache}`));
  }
  const rest = reply.ranking.length - shown;
  return rest > 0 ? [box, element("p", "note", `and ${rest} more`)] : [box];
}

$("#ask").addEventListener("submit", async (e) => {
  e.preventDefault();
  const box = $("#answer");
  try {
    const response = await fetch("/api/pick?" + new URLSearchParams(new FormData(e.target)));
    const reply = await response.json();
    box.replaceChildren(...(response.ok ? answer(reply) : [element("p", "bad", reply.error)]));
  } catch (err) {
    box.replaceChildren(element("p", "bad", String(err)));
  }
});
