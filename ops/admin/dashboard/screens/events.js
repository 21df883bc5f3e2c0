// The events of the node of this page as they happen, newest first.

import { h } from "../dom.js";
import { clock, count } from "../format.js";
import { badge, empty, field, foreign, notice, panel, select } from "../parts.js";

const state = { type: "", filter: "", until: null };
const GRAVE = /lost|gone|down|refused|stuck|not_saved|not_carried|missed|dead_letter|stale|disconnected|ended/;
const MOST = 200;

export default {
  id: "events",
  title: "Events",
  lead: "What happens on the node of this page, as it happens.",
  wants: () => [],
  view: (app) => [standing(app), toolbar(app), list(app)],
};

// What an event says, but its type: names and values.
export function details(app, event) {
  const { type, ...rest } = event;
  return Object.entries(rest).filter(([, value]) => value !== null).map(([name, value]) => h("span", { class: "fact" }, h("span", { class: "quiet" }, `${name} `), word(app, name, value)));
}

function word(app, name, value) {
  const isNode = typeof value === "string" && /^[0-9a-f]{16}$/.test(value) && app.names.has(value);
  return isNode ? app.node(value) : foreign(typeof value === "object" ? JSON.stringify(value) : value);
}

function standing(app) {
  const { state: now, reason } = app.live;
  if (now === "live") return null;
  if (now === "off") return notice("warn", `The events are not followed: ${reason}. The page tries again by itself.`);
  return empty("Begins to follow …");
}

function toolbar(app) {
  const types = [...new Set([...app.live.events.map(({ event }) => event.type), state.type])].filter(Boolean).sort();
  const held = state.until !== null;
  return h("div", { class: "toolbar", key: "toolbar" },
    field("Type", select([["", "all types"], ...types.map((type) => [type, type])], state.type, (type) => { state.type = type; app.redraw(); }, { name: "type" })),
    field("Contains", h("input", { type: "search", name: "filter", value: state.filter, autocomplete: "off", placeholder: "press / to filter", oninput: (event) => { state.filter = event.target.value; app.redraw(); } })),
    h("button", { "aria-pressed": held ? "true" : "false", onclick: () => { state.until = held ? null : app.live.count; app.redraw(); } }, held ? "Go on" : "Hold"),
    h("button", { onclick: () => { app.live.events.length = 0; app.redraw(); } }, "Clear"));
}

function list(app) {
  const fits = ({ number, event }) => (state.until === null || number <= state.until) && (!state.type || event.type === state.type)
    && (!state.filter || JSON.stringify(event).toLowerCase().includes(state.filter.toLowerCase()));
  const rows = app.live.events.filter(fits);
  const later = state.until === null ? 0 : app.live.count - state.until;
  return panel("Events", { "data-count": app.live.events.length, aside: h("span", { class: "quiet" }, later ? `${count(later)} came since you hold` : `${count(rows.length)} shown`) },
    rows.length === 0 ? empty("Nothing yet. What happens from now on stands here.")
      : h("ol", { class: "lately", "aria-label": "Events" }, rows.slice(0, MOST).map((one) => h("li", { key: one.number },
        h("time", {}, clock(one.at)), badge(GRAVE.test(one.event.type) || GRAVE.test(one.event.change ?? "") ? "warn" : "plain", one.event.type), h("span", {}, details(app, one.event))))));
}
