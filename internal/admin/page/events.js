// The events beside the charts: what the log has about the sidecar and its upstreams.

import { $, clock, element } from "./dom.js";

export function drawEvents(events) {
  const items = events.map((e) => {
    const about = (e.upstreams ?? []).join(", ") + (e.more_upstreams ? ` and ${e.more_upstreams} more` : "");
    const time = element("time", "", clock(e.at));
    time.dateTime = e.at;
    const text = element("span", "", e.text + (e.times > 1 ? ` (${e.times} times)` : ""));
    return element("li", e.level, time, text, ...[about, e.cause].filter(Boolean).map((t) => element("small", "", t)));
  });
  $("#events").replaceChildren(...(items.length ? items : [element("li", "quiet", "None yet.")]));
}
