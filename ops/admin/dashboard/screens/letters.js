// The messages that nobody waited for and that were not delivered, of all members, newest first.

import { h } from "../dom.js";
import { clock, count, plural } from "../format.js";
import { code, field, foreign, freshness, missing, panel, table } from "../parts.js";

const PATH = "cluster/dead-letters";
const MOST = 256;
const state = { filter: "" };

export default {
  id: "letters",
  title: "Dead letters",
  lead: "Messages that nobody waited for and that were not delivered. Each node keeps its last 256.",
  wants: () => [[PATH, 2500]],
  view: (app) => [freshness(app, PATH), missing(app, PATH), toolbar(app), list(app)],
};

// All that are known, newest first; `from` is the node that keeps it.
export function lettersOf(app) {
  return app.answers(PATH).flatMap(([from, answer]) => answer.letters.map((letter) => ({ ...letter, from }))).sort((a, b) => b.at_unix_ms - a.at_unix_ms || b.number - a.number);
}

export function letterColumns(app) {
  return [
    { title: "Time", cell: (letter) => clock(letter.at_unix_ms) },
    { title: "Sent by", cell: (letter) => app.node(letter.from) },
    { title: "For", wide: true, cell: (letter) => code(letter.target) },
    { title: "Message", cell: (letter) => foreign(letter.message) },
    { title: "Reason", wide: true, cell: (letter) => foreign(letter.reason) },
    { title: "Meant for node", cell: (letter) => (letter.node ? app.node(letter.node) : "–") },
    { title: "No.", number: true, cell: (letter) => count(letter.number) },
  ];
}

function toolbar(app) {
  return h("div", { class: "toolbar", key: "toolbar" },
    field("For, message or reason", h("input", { type: "search", name: "filter", value: state.filter, autocomplete: "off", placeholder: "press / to filter", oninput: (event) => { state.filter = event.target.value; app.redraw(); } })));
}

function list(app) {
  if (!app.topic(PATH).data) return null;
  const all = lettersOf(app);
  const rows = all.filter((letter) => `${letter.target} ${letter.message} ${letter.reason}`.toLowerCase().includes(state.filter.toLowerCase()));
  return panel("Letters", { "data-count": all.length, aside: h("span", { class: "quiet" }, `${count(rows.length)} of ${plural(all.length, "letter")}`) },
    table("Dead letters", letterColumns(app), rows.slice(0, MOST), (letter) => `${letter.from} ${letter.number}`, { none: all.length ? "None fits." : "Every message has been delivered." }));
}
