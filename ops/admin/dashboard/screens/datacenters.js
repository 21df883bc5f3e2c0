// The datacenters as the nodes of this one see them: where each stands, how far away it is, and who of this one is connected there.

import { confirmAct } from "../act.js";
import { links } from "../charts.js";
import { h } from "../dom.js";
import { count, millis } from "../format.js";
import { badge, code, empty, facts, foreign, freshness, missing, notice, panel, table, STANDINGS } from "../parts.js";

const PATH = "cluster/datacenters";
const MOST_DRAWN = 12;

export default {
  id: "datacenters",
  title: "Datacenters",
  lead: "Where each stands, and how far away it is from here.",
  wants: () => [[PATH, 2000], ["cluster/peers", 3000]],
  view: (app) => {
    const views = app.answers(PATH);
    const view = views.find(([id]) => id === app.own())?.[1] ?? views[0]?.[1];
    return [freshness(app, PATH), missing(app, PATH), ...(view ? shown(app, view, views) : [])];
  },
};

function shown(app, view, views) {
  if (view.datacenters.length === 0) return [empty("This cluster belongs to no datacenter: nothing is registered anywhere.")];
  const all = view.datacenters.map((one) => ({ ...one, own: one.id === view.own, ...reached(app, one.id), trips: trips(views, one.id) }));
  return [view.stale && notice("bad", `The control plane does not answer since ${millis(view.age_ms)}: this map is stale.`), map(all), list(app, all), known(app, view)];
}

// How many links of the nodes here lead there, and how many of them hold.
function reached(app, id) {
  const peers = app.answers("cluster/peers").flatMap(([, answer]) => answer.peers).filter((peer) => peer.datacenter === id && !peer.client);
  return { peers: peers.length, connected: peers.filter((peer) => peer.connected).length };
}

function trips(views, id) {
  return views.map(([node, view]) => [node, view.datacenters.find((one) => one.id === id)?.round_trip_ms ?? null]).filter(([, trip]) => trip !== null);
}

function median(trips) {
  const sorted = trips.map(([, trip]) => trip).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : null;
}

function map(all) {
  const drawn = (one) => ({
    name: one.name || one.id,
    place: [one.region, one.zone].filter(Boolean).join(" · ") || "no region",
    standing: one.standing,
    link: one.standing === "inactive" ? "cut" : one.connected > 0 ? "holds" : "quiet-link",
    trip: one.trips.length ? millis(median(one.trips)) : "not measured",
    reached: one.peers ? `${one.connected} of ${one.peers} links up` : "no links yet",
  });
  const own = all.find((one) => one.own);
  const others = all.filter((one) => !one.own).slice(0, MOST_DRAWN).map(drawn);
  const words = all.map((one) => `${one.name || one.id} is ${one.standing}`).join(", ");
  return panel("Map", { "data-map": "" }, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Map of the datacenters" }, links(own && drawn(own), others, words)));
}

function list(app, all) {
  const labels = (one) => Object.entries(one.labels).map(([name, value]) => `${name}=${value}`).join(", ");
  const columns = [
    { title: "Datacenter", cell: (one) => [foreign(one.name || one.id), one.own && badge("plain", "here")] },
    { title: "Standing", cell: (one) => badge(STANDINGS[one.standing], one.standing) },
    { title: "Round trip", number: true, cell: (one) => (one.own ? "here" : one.trips.length ? millis(median(one.trips)) : "not measured") },
    { title: "Links up", number: true, cell: (one) => (one.own ? "–" : `${count(one.connected)} of ${count(one.peers)}`) },
    { title: "Region", cell: (one) => foreign(one.region || "–") },
    { title: "Zone", cell: (one) => foreign(one.zone || "–") },
    { title: "Labels", cell: (one) => foreign(labels(one) || "–") },
    { title: "Endpoints", cell: (one) => code(one.endpoints.join(", ") || "–") },
    { title: "From each node", cell: (one) => one.trips.map(([node, trip]) => h("div", {}, app.node(node), ` ${millis(trip)}`)) },
  ];
  return panel("Datacenters", { "data-count": all.length }, table("Datacenters", columns, all, (one) => one.id));
}

function known(app, view) {
  const drain = () => confirmAct({
    title: "Drain this datacenter",
    text: ["Nothing new is placed in ", foreign(view.own), " from outside any more. What lives there still answers."],
    path: "datacenter/drain",
    done: ({ outcome }) => outcome,
  }, () => app.poll.refresh());
  return panel("The map of this node", { aside: view.own && h("button", { class: "danger", onclick: drain }, "Drain this datacenter …") },
    facts([["Own datacenter", foreign(view.own ?? "none")], ["Version", view.version], ["The control plane answered", view.age_ms === null ? "never" : `${millis(view.age_ms)} ago`], ["Stale", view.stale ? badge("bad", "yes") : "no"]]),
    h("p", { class: "quiet" }, "Round trips are measured where a policy of placement looks at them, and each node knows its own alone."));
}
