// Which node owns which shard of a kind, as the directory has it, and what moves. A change of owner between two looks is kept, so
// that a move is seen also when it was quick.

import { confirmAct } from "../act.js";
import { shares } from "../charts.js";
import { h } from "../dom.js";
import { clock, count, spans } from "../format.js";
import { badge, code, empty, facts, field, foreign, freshness, kindsOf, missing, panel, select, table, tint } from "../parts.js";

const PAGE = 1000;
const MOST_CHANGES = 100;
const state = { kind: null, from: 0, node: null, shard: null, to: "", owners: new Map(), changes: [] };

export default {
  id: "shards",
  title: "Shards",
  lead: "Who owns what, and what is on its way.",
  wants: (app) => [["cluster/kinds", 5000], ["cluster/moves", 1000], ["cluster/members", 4000], ...own(app)],
  begin: (app) => app.poll.listen("cluster/kinds", () => choose(app, state.kind)),
  view: (app) => [missing(app, "cluster/moves"), toolbar(app), ...shown(app), moves(app), changes(app)],
};

// The kinds of which this screen has something to say.
function divided(app) {
  return kindsOf(app).filter((kind) => kind.divided !== "actors");
}

function chosen(app) {
  return divided(app).find((kind) => kind.name === state.kind);
}

function path() {
  return `shards?kind=${encodeURIComponent(state.kind)}&from=${state.from}&limit=${PAGE}`;
}

function rangesPath() {
  return `ranges?kind=${encodeURIComponent(state.kind)}`;
}

function own(app) {
  const kind = chosen(app);
  if (!kind) return [];
  return kind.divided === "shards" ? [[path(), 1500]] : [[rangesPath(), 3000]];
}

function choose(app, wanted, from = 0) {
  const kinds = divided(app);
  const name = kinds.some((kind) => kind.name === wanted) ? wanted : kinds[0]?.name ?? null;
  if (name === state.kind && from === state.from) return;
  Object.assign(state, { kind: name, from, node: null, shard: null, owners: new Map() });
  if (name !== null) app.poll.listen(path(), (page) => compare(app, page));
  app.again();
}

function compare(app, page) {
  if (page.kind !== state.kind) return;
  for (const { shard, node, generation } of page.items) {
    const before = state.owners.get(shard);
    if (before && before.generation !== generation) state.changes.unshift({ at: Date.now(), kind: page.kind, shard, from: before.node, to: node, generation });
    state.owners.set(shard, { node, generation });
  }
  state.changes.length = Math.min(state.changes.length, MOST_CHANGES);
}

function toolbar(app) {
  const kinds = divided(app);
  if (kinds.length === 0) return freshness(app, "cluster/kinds") ?? empty("No kind is divided into shards or ranges.");
  return h("div", { class: "toolbar", key: "toolbar" },
    field("Kind", select(kinds.map((kind) => [kind.name, kind.name]), state.kind, (name) => choose(app, name), { name: "kind" })));
}

function shown(app) {
  const kind = chosen(app);
  if (!kind) return [];
  if (kind.divided === "ranges") return [ranges(app)];
  const { data } = app.topic(path());
  return [freshness(app, path()), data && owners(app, data), data && grid(app, data), data && one(app, data)];
}

function owners(app, page) {
  const all = page.owners.map(({ node, shards }) => [tint(app, node), shards]);
  const choice = (id) => () => { state.node = state.node === id ? null : id; app.redraw(); };
  return panel("Owners", { "data-owned": page.owned, aside: h("span", { class: "quiet" }, `${count(page.owned)} of ${count(page.shards)} shards have an owner`) },
    shares([...all, ["unowned", page.shards - page.owned]], "Shares of the nodes"),
    h("ul", { class: "legend" }, page.owners.map(({ node, shards }) => h("li", { key: node },
      h("button", { "aria-pressed": state.node === node ? "true" : "false", onclick: choice(node), title: "show only these" }, h("i", { class: `dot ${tint(app, node)}` }), app.node(node), h("b", {}, count(shards)))))),
    state.node && facts([[app.node(state.node), spans(page.items.filter((item) => item.node === state.node).map((item) => item.shard)) || "none on this page"]]));
}

function grid(app, page) {
  const items = new Map(page.items.map((item) => [item.shard, item]));
  // A page has as many shards with an owner as there are numbers on a screen, so it knows all of those that have one.
  const last = Math.min(page.shards, state.from + PAGE);
  const numbers = Array.from({ length: Math.max(0, last - state.from) }, (_, at) => state.from + at);
  const moving = new Set(app.answers("cluster/moves").flatMap(([, answer]) => answer.moves).filter((move) => move.kind === state.kind).map((move) => move.shard));
  const cell = (shard) => {
    const item = items.get(shard);
    const kind = [item ? tint(app, item.node) : "unowned", moving.has(shard) && "moving", item && !item.known && "lost", state.node && item?.node !== state.node && "other", state.shard === shard && "chosen"];
    const text = item ? `shard ${shard}: ${app.name(item.node)}, generation ${item.generation}` : `shard ${shard}: no owner`;
    return h("button", { class: `cell ${kind.filter(Boolean).join(" ")}`, key: shard, title: text, "aria-label": text, "data-shard": shard, tabindex: shard === (state.shard ?? state.from) ? 0 : -1,
      onclick: () => { state.shard = shard; app.redraw(); } }, moving.has(shard) ? "›" : "");
  };
  const turn = (from) => () => choose(app, state.kind, from);
  return panel("Map", { aside: h("span", { class: "quiet" }, "arrow keys move, a click chooses") },
    h("div", { class: "grid", key: "grid", role: "group", "aria-label": "Shards", onkeydown: (event) => walk(event) }, numbers.map(cell)),
    (state.from > 0 || last < page.shards) && h("div", { class: "buttons" },
      h("button", { disabled: state.from === 0, onclick: turn(Math.max(0, state.from - PAGE)) }, "Before"),
      h("button", { disabled: last === page.shards, onclick: turn(last) }, "Next")));
}

// The arrow keys go from cell to cell.
function walk(event) {
  const cells = [...event.currentTarget.children];
  const at = cells.indexOf(document.activeElement);
  if (at < 0) return;
  const row = cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row }[event.key];
  if (!step) return;
  event.preventDefault();
  cells[Math.max(0, Math.min(cells.length - 1, at + step))].focus();
}

function one(app, page) {
  if (state.shard === null) return null;
  const item = page.items.find((item) => item.shard === state.shard);
  const others = app.answers("cluster/node").map(([id]) => id).filter((id) => id !== item?.node);
  const to = others.includes(state.to) ? state.to : others[0];
  const { kind, shard } = { kind: state.kind, shard: state.shard };
  const move = () => confirmAct({
    title: `Move shard ${shard}`,
    text: [`Shard ${shard} of `, foreign(kind), ` goes from `, item ? app.node(item.node) : "nobody", " to ", app.node(to), ". Its actors finish what they do and come to life there."],
    path: "shards/move",
    body: { kind, shard, to },
    done: ({ outcome }) => (outcome.moved ? `It has moved; its generation is ${outcome.generation}.` : `It stays: ${outcome.reason}`),
  }, () => app.poll.refresh());
  return panel(`Shard ${shard}`, { key: "one" },
    facts([["Owner", item ? app.node(item.node) : "nobody"], ["Generation", item?.generation ?? "–"], ["Owner is a member", item ? (item.known ? "yes" : "no") : "–"]]),
    others.length > 0 && h("div", { class: "toolbar" },
      field("Move to", select(others.map((id) => [id, app.name(id)]), to, (id) => { state.to = id; app.redraw(); }, { name: "to" })),
      h("button", { class: "danger", onclick: move }, "Move …")));
}

function ranges(app) {
  const { data } = app.topic(rangesPath());
  const columns = [
    { title: "Partition", cell: (range) => code(range.partition) },
    { title: "Keys", wide: true, cell: (range) => foreign(range.range) },
    { title: "Node", cell: (range) => app.node(range.node) },
    { title: "Address", cell: (range) => code(range.address) },
  ];
  return panel("Ranges", { aside: data && h("span", { class: "quiet" }, `table ${data.version ?? "–"}`) }, freshness(app, rangesPath()),
    data && table("Ranges of the kind", columns, data.ranges, (range) => range.partition, { none: "This node knows no table of the kind yet." }));
}

function moves(app) {
  const now = app.answers("cluster/moves").flatMap(([from, answer]) => answer.moves.map((move) => ({ ...move, from })));
  const columns = [
    { title: "Kind", cell: (move) => foreign(move.kind) },
    { title: "Shard", number: true, cell: (move) => count(move.shard) },
    { title: "From", cell: (move) => app.node(move.from) },
    { title: "To", cell: (move) => app.node(move.to) },
    { title: "Step", cell: (move) => badge("warn", move.step) },
  ];
  return panel("On their way", {}, freshness(app, "cluster/moves"),
    table("Shards on their way", columns, now, (move) => `${move.kind} ${move.shard}`, { none: "Nothing moves." }));
}

function changes(app) {
  if (state.changes.length === 0) return null;
  return panel("Changed owners while you looked", { "data-changes": state.changes.length }, table("Changes of owners", [
    { title: "Time", cell: (change) => clock(change.at) },
    { title: "Kind", cell: (change) => foreign(change.kind) },
    { title: "Shard", number: true, cell: (change) => count(change.shard) },
    { title: "From", cell: (change) => app.node(change.from) },
    { title: "To", cell: (change) => app.node(change.to) },
    { title: "Generation", number: true, cell: (change) => change.generation },
  ], state.changes, (change) => `${change.at} ${change.shard}`));
}
