// The pieces that all screens are made of. They say how a fact, its absence and its age are shown, and know nothing of the facts.

import { h } from "./dom.js";
import { age, plural } from "./format.js";

export function badge(kind, text) {
  return h("span", { class: `badge ${kind}` }, text);
}

export function notice(kind, ...children) {
  return h("p", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : null }, ...children);
}

export function empty(...text) {
  return h("p", { class: "empty" }, ...text);
}

// Foreign text that must not turn the order of its neighbours.
export function foreign(text, properties = {}) {
  return h("bdi", properties, text);
}

export function code(text) {
  return h("bdi", { class: "code" }, text);
}

export function panel(title, properties, ...children) {
  const { aside, ...rest } = properties ?? {};
  return h("section", { class: "panel", ...rest, "aria-label": title },
    h("div", { class: "panel-head" }, h("h2", {}, title), aside), ...children);
}

export function tile(title, value, below, chart, properties = {}) {
  return h("div", { class: "tile", ...properties },
    h("div", { class: "tile-title" }, title), h("div", { class: "tile-value" }, value),
    h("div", { class: "tile-below" }, below), chart);
}

// `columns` are {title, cell(row), number, wide}; a row is named by `key(row)`.
export function table(title, columns, rows, key, { chosen = null, none = "Nothing here." } = {}) {
  if (rows.length === 0) return empty(none);
  const kind = (column) => [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null;
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title, key: `table ${title}` },
    h("table", {}, h("caption", {}, title),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: kind(column) }, column.title)))),
      h("tbody", {}, rows.map((row) => h("tr", { key: key(row), "aria-current": chosen === key(row) ? "true" : null, class: chosen === key(row) ? "chosen" : null },
        columns.map((column) => h("td", { class: kind(column) }, column.cell(row))))))));
}

export function field(label, input) {
  return h("label", { class: "field" }, h("span", {}, label), input);
}

export function select(options, chosen, onchange, properties = {}) {
  const list = h("select", { ...properties, onchange: (event) => onchange(event.target.value) },
    options.map(([value, text]) => h("option", { value }, text)));
  list.value = chosen;
  for (const option of list.options) option.toggleAttribute("selected", option.value === chosen);
  return list;
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

// What is known about a topic: nothing yet, an error, or how old it is.
export function freshness(app, path) {
  const { data, at, error } = app.topic(path);
  if (error && data === null) return notice("bad", said(error));
  if (data === null) return empty("Asking …");
  if (error || app.isStale(path)) {
    const why = error ? said(error) : app.paused ? "the page is paused" : "no answer came since";
    return notice("warn", `This is ${age(Date.now() - at)} old: ${why}.`);
  }
  return null;
}

function said(error) {
  if (error.status === 404 && error.code === "no_such_path") return "Not available: the node has no such answer.";
  return error.status === 0 ? `The node does not answer: ${error.message}` : `The node refuses: ${error.message}`;
}

// Those of the cluster who did not answer, and those who refused.
export function missing(app, path) {
  const { data } = app.topic(path);
  if (!data) return null;
  const who = (node, why) => h("li", {}, app.node(node), `: ${why}`);
  const lines = [...data.silent.map(({ node, reason }) => who(node, reason)), ...data.refused.map(({ node, error }) => who(node, error.message))];
  if (lines.length === 0) return null;
  return h("div", { class: "notice warn", "data-silent": "" }, h("strong", {}, `${plural(lines.length, "member")} did not answer`), h("ul", {}, lines.slice(0, 8)),
    lines.length > 8 && h("p", {}, `and ${lines.length - 8} more`));
}

// The colour of a node: it keeps it for as long as the page is open.
export function tint(app, id) {
  const at = [...app.names.keys()].indexOf(id);
  return at < 0 ? "c-none" : `c${at % 8}`;
}

export function kindsOf(app) {
  const kinds = new Map();
  for (const [, answer] of app.answers("cluster/kinds")) {
    for (const kind of answer.kinds) {
      const known = kinds.get(kind.name);
      kinds.set(kind.name, { ...kind, active: kind.active + (known?.active ?? 0), hosted: kind.hosted || Boolean(known?.hosted) });
    }
  }
  return [...kinds.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export const STANDINGS = {
  up: "good", active: "good", live: "good", joining: "warn", leaving: "warn", exiting: "warn", draining: "warn", registered: "warn",
  opening: "warn", closing: "warn", down: "bad", removed: "bad", inactive: "bad", lost: "bad",
};

// Everything that an operator should look at, worst first: pairs of a class and a sentence.
export function worries(app) {
  const found = [];
  const say = (kind, ...text) => found.push([kind, text]);
  for (const [id, node] of app.answers("cluster/node")) {
    if (!node.ready) say("bad", app.node(id), ` is not ready: its session is ${node.session.standing}${node.session.stopping ? ", it stops" : ""}.`);
  }
  for (const { node, reason } of app.topic("cluster/node").data?.silent ?? []) say("bad", app.node(node), ` does not answer: ${reason}.`);
  for (const member of membersSeen(app)) {
    if (member.suspectedBy.length > 0) say("bad", app.node(member.id), " is silent to ", member.suspectedBy.map((id) => [app.node(id), " "]));
    if (STANDINGS[member.status] !== "good") say("warn", app.node(member.id), ` is ${member.status}.`);
  }
  const [, map] = app.answers("cluster/datacenters")[0] ?? [];
  for (const one of map?.datacenters ?? []) if (one.standing !== "active") say("warn", "Datacenter ", foreign(one.name || one.id), ` is ${one.standing}.`);
  if (map?.stale) say("bad", "The control plane does not answer: the map of datacenters is stale.");
  return found.sort(([a], [b]) => a.localeCompare(b));
}

// The members as the node of this page sees them, and who of the others suspects them.
export function membersSeen(app) {
  const views = app.answers("cluster/members");
  const own = views.find(([id]) => id === app.own()) ?? views[0];
  return (own?.[1].members ?? []).map((member) => {
    const others = views.map(([id, view]) => [id, view.members.find((one) => one.id === member.id)]).filter(([, seen]) => seen);
    const phis = others.map(([, seen]) => seen.phi).filter((phi) => phi !== null);
    return {
      ...member,
      leads: own[1].leader === member.id,
      phi: phis.length ? Math.max(...phis) : null,
      suspectedBy: others.filter(([, seen]) => seen.suspect || seen.reachable === false).map(([id]) => id),
      seenBy: others.length,
      asked: views.length,
    };
  });
}
