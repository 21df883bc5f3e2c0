// How many messages of each type are handled, and how long that takes. One in 64 is timed; rates are differences between two
// answers.

import { histogram, sparkline } from "../charts.js";
import { h } from "../dom.js";
import { count, rate, seconds } from "../format.js";
import { empty, facts, field, foreign, freshness, missing, notice, panel, select, table } from "../parts.js";
import { PATH, sum } from "../rates.js";

const state = { node: "", row: null, filter: "" };
const MOST = 200;

export default {
  id: "messages",
  title: "Messages",
  lead: "What is handled how often, and how long it takes. One message in 64 is timed.",
  wants: () => [],
  view: (app) => {
    const { data, error } = app.topic(PATH);
    if (!data && error?.status === 404) return [notice("warn", h("span", { "data-unavailable": "" }, "Not available: this node does not count its messages."))];
    if (!data) return [freshness(app, PATH)];
    const rows = app.rates.rows(state.node || null);
    return [freshness(app, PATH), missing(app, PATH), toolbar(app), one(app, rows), list(app, rows)];
  },
};

function toolbar(app) {
  const nodes = [["", "all nodes"], ...app.answers(PATH).map(([id]) => [id, app.name(id)])];
  return h("div", { class: "toolbar", key: "toolbar" },
    field("Node", select(nodes, state.node, (node) => { state.node = node; app.redraw(); }, { name: "node" })),
    field("Kind or message", h("input", { type: "search", name: "filter", value: state.filter, autocomplete: "off", placeholder: "press / to filter", oninput: (event) => { state.filter = event.target.value; app.redraw(); } })));
}

function list(app, rows) {
  const wanted = rows.filter((row) => `${row.kind} ${row.message}`.toLowerCase().includes(state.filter.toLowerCase()));
  const choose = (row) => () => { state.row = state.row === row.id ? null : row.id; app.redraw(); };
  const columns = [
    { title: "Message", wide: true, cell: (row) => h("button", { class: "plain", onclick: choose(row), "aria-pressed": state.row === row.id ? "true" : "false" }, foreign(row.message)) },
    { title: "Kind", cell: (row) => foreign(row.kind) },
    { title: "Rate", number: true, cell: (row) => rate(row.rate) },
    { title: "Last 5 minutes", cell: (row) => sparkline(app.rates.line(row.id), "rate over the last 5 minutes", { width: 90, height: 20, slots: 30 }) },
    { title: "Mean", number: true, cell: (row) => seconds(row.mean) },
    { title: "p50", number: true, cell: (row) => seconds(row.p50) },
    { title: "p99", number: true, cell: (row) => seconds(row.p99) },
    { title: "Slowest", number: true, cell: (row) => (row.sampled ? seconds(row.slowest) : "–") },
    { title: "Started", number: true, cell: (row) => count(row.started) },
  ];
  return panel("Types of messages", { aside: h("span", { class: "quiet" }, "choose one to see its latencies") },
    table("Types of messages", columns, wanted.slice(0, MOST), (row) => row.id, { chosen: state.row, none: "No message has been handled yet." }),
    wanted.length > MOST && empty(`${count(wanted.length - MOST)} more: filter them.`));
}

function one(app, rows) {
  const row = rows.find((row) => row.id === state.row);
  const all = row ?? sum(rows, app.rates.bounds);
  const title = row ? [foreign(row.message), " of ", foreign(row.kind)] : "All messages";
  return panel("Latencies", { "data-latencies": "" }, h("p", { class: "subject" }, title),
    histogram(app.rates.bounds, all.buckets, "How many of the messages that were timed took how long", { marks: [["p50", all.p50], ["p99", all.p99]] }),
    facts([["Rate", rate(all.rate)], ["p50", seconds(all.p50)], ["p99", seconds(all.p99)], ["Slowest", all.sampled ? seconds(all.slowest) : "–"], ["Started", count(all.started)], ["Timed", count(all.sampled)]]));
}
