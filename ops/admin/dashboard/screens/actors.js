// Looks for actors by kind and the beginning of their key, and shows one of them: where it lives, how it is doing, and what went
// wrong with it as far as the nodes still know. The one that is shown is part of the address of the page.

import { confirmAct } from "../act.js";
import { actorPath } from "../api.js";
import { h } from "../dom.js";
import { clock, count, millis } from "../format.js";
import { badge, code, empty, facts, field, foreign, freshness, kindsOf, missing, notice, panel, select, table, tint } from "../parts.js";
import { letterColumns, lettersOf } from "./letters.js";
import { details } from "./events.js";

const PAGE = 50;
const TYPING = 300;
const state = { kind: "", prefix: "", typing: null };

export default {
  id: "actors",
  title: "Actors",
  lead: "Search one, and see where it lives and how it is doing.",
  wants: (app) => [["cluster/kinds", 5000], [search(), 2500], ["cluster/dead-letters", 5000], ...wantsOne(app)],
  view: (app) => [toolbar(app), one(app), found(app)],
};

function chosen(app) {
  const [screen, kind, ...key] = app.route;
  return screen === "actors" && kind && key.length ? { kind, key: key.join("/") } : null;
}

function search() {
  return listing(state.kind, state.prefix, PAGE);
}

function listing(kind, prefix, limit) {
  const query = new URLSearchParams({ limit, prefix });
  if (kind) query.set("kind", kind);
  return `cluster/actors?${query}`;
}

// A path cannot name the keys that are steps within a path.
function canBeAsked({ key }) {
  return key !== "." && key !== "..";
}

function wantsOne(app) {
  const wanted = chosen(app);
  if (!wanted) return [];
  const here = [listing(wanted.kind, wanted.key, PAGE), 2000];
  return canBeAsked(wanted) ? [[actorPath(wanted.kind, wanted.key), 2000], here] : [here];
}

function addressOf(actor) {
  return `#actors/${encodeURIComponent(actor.kind)}/${encodeURIComponent(actor.key)}`;
}

function toolbar(app) {
  const typed = (event) => {
    clearTimeout(state.typing);
    const { value } = event.target;
    state.typing = setTimeout(() => { state.prefix = value; app.again(); }, TYPING);
  };
  const kinds = [["", "all kinds"], ...kindsOf(app).map((kind) => [kind.name, `${kind.name} (${count(kind.active)} active)`])];
  return h("div", { class: "toolbar", key: "toolbar" },
    field("Kind", select(kinds, state.kind, (kind) => { state.kind = kind; app.again(); }, { name: "kind" })),
    field("Key begins with", h("input", { type: "search", name: "prefix", value: state.prefix, oninput: typed, autocomplete: "off", spellcheck: "false", placeholder: "press / to search" })));
}

function found(app) {
  const path = search();
  const { data } = app.topic(path);
  const rows = app.answers(path).flatMap(([node, answer]) => answer.actors.map((actor) => ({ ...actor, node }))).sort(byKey);
  const more = app.answers(path).filter(([, answer]) => answer.next !== null).map(([node]) => node);
  const now = chosen(app);
  const columns = [
    { title: "Key", wide: true, cell: (actor) => h("a", { href: addressOf(actor), "data-actor": "" }, foreign(actor.key)) },
    { title: "Kind", cell: (actor) => foreign(actor.kind) },
    { title: "Node", cell: (actor) => [h("i", { class: `dot ${tint(app, actor.node)}` }), app.node(actor.node)] },
    { title: "State", cell: stateOf },
    { title: "Shard", number: true, cell: (actor) => count(actor.shard) },
    { title: "Generation", number: true, cell: (actor) => actor.generation },
    { title: "Running", number: true, cell: (actor) => count(actor.running) },
    { title: "Waiting", number: true, cell: (actor) => count(actor.waiting) },
    { title: "Idle", number: true, cell: (actor) => millis(actor.idle_ms) },
  ];
  return panel("Active actors", { aside: data && h("span", { class: "quiet" }, `${count(rows.length)} shown`) },
    freshness(app, path), missing(app, path),
    data && table("Active actors", columns, rows, keyOf, { chosen: now && rows.filter((row) => row.kind === now.kind && row.key === now.key).map(keyOf)[0], none: "No active actor fits. One that is not active comes to life with its next message." }),
    more.length > 0 && h("p", { class: "quiet" }, "There are more on ", more.map((id) => [app.node(id), " "]), "– type more of the key."));
}

function keyOf(actor) {
  return `${actor.node} ${actor.kind} ${actor.key}`;
}

function stateOf(actor) {
  return [badge(actor.state === "valid" ? "good" : "warn", actor.state), actor.leaving && badge("warn", `goes: ${actor.leaving}`)];
}

function one(app) {
  const wanted = chosen(app);
  if (!wanted) return null;
  const path = actorPath(wanted.kind, wanted.key);
  const { data } = app.topic(path);
  const active = app.answers(listing(wanted.kind, wanted.key, PAGE))
    .flatMap(([node, answer]) => answer.actors.map((actor) => ({ ...actor, node }))).filter((actor) => actor.key === wanted.key && actor.kind === wanted.kind);
  return panel("One actor", { key: "one", "data-one": "", aside: h("a", { href: "#actors" }, "Close") },
    h("p", { class: "subject" }, foreign(wanted.kind), " / ", foreign(wanted.key)),
    canBeAsked(wanted) ? freshness(app, path) : notice("warn", "A key that is a step within a path cannot be asked for: only where it is active is shown."),
    facts([["Owner", data?.owner ? [h("i", { class: `dot ${tint(app, data.owner.node)}` }), app.node(data.owner.node)] : "nobody"], ["Generation", data?.owner?.generation ?? "–"],
      ["Id", data ? code(data.actor) : "–"], ...(active.length ? activity(app, active) : [["Active", "no"]])]),
    letGo(app, wanted, data), errors(app, data));
}

function activity(app, active) {
  return active.flatMap((actor) => [["Active on", app.node(actor.node)], ["State", stateOf(actor)], ["Running, waiting", `${count(actor.running)}, ${count(actor.waiting)}`],
    ["Last message", `${millis(actor.idle_ms)} ago`], ["Shard", count(actor.shard)]]);
}

function letGo(app, wanted, data) {
  if (!data?.owner) return null;
  if (!data.owner.own) return h("p", { class: "quiet" }, "Only its own node can let it go: open the dashboard of ", app.node(data.owner.node), ".");
  if (!data.here) return null;
  const go = () => confirmAct({
    title: "Let it go",
    text: ["The actor ", foreign(wanted.key), " goes once its running messages have ended. The next message brings it back."],
    path: `${actorPath(wanted.kind, wanted.key)}/deactivate`,
    done: ({ outcome }) => outcome,
  }, () => app.poll.refresh());
  return h("div", { class: "buttons" }, h("button", { class: "danger", onclick: go }, "Let it go …"));
}

// What the nodes still know of failures that name it: dead letters, and events since the page was opened.
function errors(app, data) {
  if (!data) return null;
  const letters = lettersOf(app).filter((letter) => letter.target === data.actor);
  const events = app.live.events.filter(({ event }) => event.actor === data.actor);
  return h("div", {}, h("h3", {}, "Its last errors"),
    letters.length === 0 && events.length === 0 && empty("Nothing that failed names it, among the dead letters that are kept and the events since you opened this page."),
    events.length > 0 && h("ul", { class: "lately" }, events.slice(0, 20).map((one) => h("li", { key: one.number }, h("time", {}, clock(one.at)), badge("warn", one.event.type), h("span", {}, details(app, one.event))))),
    letters.length > 0 && table("Dead letters of the actor", letterColumns(app), letters.slice(0, 20), (letter) => `${letter.from} ${letter.number}`));
}

function byKey(one, other) {
  return one.key.localeCompare(other.key, "en", { numeric: true }) || one.kind.localeCompare(other.kind);
}
