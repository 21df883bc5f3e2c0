// The cluster at a glance: whether all is well, how much it does, and how each node takes part in it.

import { sparkline } from "../charts.js";
import { h } from "../dom.js";
import { clock, count, plural, rate, seconds } from "../format.js";
import { badge, empty, foreign, freshness, membersSeen, missing, notice, panel, table, tile, tint, worries, STANDINGS } from "../parts.js";
import { PATH as MESSAGES, sum } from "../rates.js";
import { details } from "./events.js";

export default {
  id: "overview",
  title: "Overview",
  lead: "Whether all is well, and how much is going on.",
  wants: () => [["cluster/members", 2000], ["cluster/datacenters", 4000], ["cluster/dead-letters", 5000]],
  view: (app) => [health(app), missing(app, "cluster/node"), tiles(app), nodes(app), recent(app)],
};

function health(app) {
  if (app.topic("cluster/node").data === null) return freshness(app, "cluster/node");
  const found = worries(app);
  if (found.length === 0) {
    const nodes = app.answers("cluster/node").length;
    return notice("good", h("strong", { "data-health": "well" }, "All is well."), ` ${plural(nodes, "node")} ready, nobody is suspected.`);
  }
  return h("div", { class: `notice ${found[0][0]}`, role: "status" },
    h("strong", { "data-health": found[0][0] }, plural(found.length, "thing"), " to look at"), h("ul", {}, found.slice(0, 8).map(([, text]) => h("li", {}, text))));
}

function tiles(app) {
  const nodes = app.answers("cluster/node");
  const ready = nodes.filter(([, node]) => node.ready).length;
  const all = app.topic("cluster/node").data ? nodes.length + app.topic("cluster/node").data.silent.length : 0;
  const { history } = app.rates;
  const rates = history.map((one) => one.rate);
  const slow = history.map((one) => one.p99);
  const measured = app.topic(MESSAGES).data !== null;
  const members = membersSeen(app);
  const load = (field) => members.reduce((total, member) => total + (member.load?.[field] ?? 0), 0);
  const letters = app.answers("cluster/dead-letters").flatMap(([, answer]) => answer.letters);
  const lately = letters.filter((letter) => Date.now() - letter.at_unix_ms < 60_000).length;
  const map = app.answers("cluster/datacenters")[0]?.[1];
  const active = map?.datacenters.filter((one) => one.standing === "active").length ?? 0;
  const away = measured ? "" : "not available";
  return h("div", { class: "tiles" },
    tile("Nodes ready", [count(ready), h("small", {}, ` of ${all}`)], ready === all ? "all of them" : "some are not", null, { "data-tile": "nodes" }),
    tile("Messages", rate(rates.at(-1)), away || "last 5 minutes", measured && sparkline(rates, "Messages a second over the last 5 minutes", { slots: 30 }), { "data-tile": "rate" }),
    tile("p99", seconds(slow.at(-1) ?? null), away || "of the last minute", measured && sparkline(slow, "p99 over the last 5 minutes", { fill: false, slots: 30 }), { "data-tile": "p99" }),
    tile("Active actors", count(load("activations")), plural(load("waiting"), "message") + " waiting", null, { "data-tile": "actors" }),
    tile("Dead letters", count(letters.length), lately ? `${count(lately)} in the last minute` : "none in the last minute", null, { "data-tile": "letters" }),
    tile("Datacenters", map?.datacenters.length ? [count(active), h("small", {}, ` of ${map.datacenters.length}`)] : "1",
      map?.datacenters.length ? "active" : "this cluster is one of its own", null, { "data-tile": "datacenters" }));
}

function nodes(app) {
  const state = new Map(app.answers("cluster/node"));
  const columns = [
    { title: "Node", cell: (member) => [h("i", { class: `dot ${tint(app, member.id)}` }), foreign(member.name || member.id, { title: member.id }), member.leads && badge("plain", "leads")] },
    { title: "Status", cell: (member) => badge(STANDINGS[member.status], member.status) },
    { title: "Ready", cell: (member) => (state.has(member.id) ? badge(state.get(member.id).ready ? "good" : "bad", state.get(member.id).ready ? "ready" : "not ready") : badge("bad", "no answer")) },
    { title: "Messages", number: true, cell: (member) => rate(sum(app.rates.rows(member.id)).rate) },
    { title: "p99", number: true, cell: (member) => seconds(sum(app.rates.rows(member.id)).p99) },
    { title: "Actors", number: true, cell: (member) => count(member.load?.activations) },
    { title: "Waiting", number: true, cell: (member) => count(member.load?.waiting) },
  ];
  return panel("Nodes", { aside: h("a", { href: "#members" }, "Members") }, freshness(app, "cluster/members"),
    app.topic("cluster/members").data && table("Nodes of the cluster", columns, membersSeen(app), (member) => member.id));
}

function recent(app) {
  const few = app.live.events.slice(0, 6);
  return panel("Lately", { aside: h("a", { href: "#events" }, "Events") },
    few.length === 0 ? empty("Nothing has happened since you opened this page.")
      : h("ul", { class: "lately" }, few.map((one) => h("li", { key: one.number }, h("time", {}, clock(one.at)), badge("plain", one.event.type), h("span", {}, details(app, one.event))))));
}
