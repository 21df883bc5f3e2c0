// Whom the nodes have met, and what waits on the lanes between their arbiters. Where most waits comes first.

import { h } from "../dom.js";
import { bytes, count, millis } from "../format.js";
import { badge, code, empty, foreign, freshness, missing, panel, table, tile } from "../parts.js";

const MOST = 200;

export default {
  id: "peers",
  title: "Peers and lanes",
  lead: "Who is connected to whom, and what waits on the way.",
  wants: () => [["cluster/peers", 2500], ["cluster/lanes", 2500]],
  view: (app) => [missing(app, "cluster/lanes"), totals(app), peers(app), lanes(app)],
};

function all(app, path, field) {
  return app.answers(path).flatMap(([at, answer]) => answer[field].map((one) => ({ ...one, at })));
}

function totals(app) {
  const [met, list] = [all(app, "cluster/peers", "peers"), all(app, "cluster/lanes", "lanes")];
  const total = (field) => list.reduce((sum, lane) => sum + lane[field], 0);
  return h("div", { class: "tiles" },
    tile("Links up", [count(met.filter((peer) => peer.connected).length), h("small", {}, ` of ${count(met.length)}`)], "from the nodes of this cluster"),
    tile("Lanes", count(list.length), "between arbiters"),
    tile("In flight", count(total("in_flight")), "calls that wait for their answer"),
    tile("Waiting", bytes(total("waiting_bytes") + total("answer_bytes")), "to be written"),
    tile("Stalled", count(total("stalled")), "calls that wait for room"));
}

function peers(app) {
  const rows = all(app, "cluster/peers", "peers").sort((a, b) => Number(a.connected) - Number(b.connected));
  const columns = [
    { title: "From", cell: (peer) => app.node(peer.at) },
    { title: "Peer", cell: (peer) => [foreign(peer.name || app.name(peer.id), { title: peer.id }), peer.client && badge("plain", "client"), peer.leaving && badge("warn", "leaves")] },
    { title: "Link", cell: (peer) => badge(peer.connected ? "good" : "bad", peer.connected ? "up" : "down") },
    { title: "Silent for", number: true, cell: (peer) => millis(peer.silent_for_ms) },
    { title: "Datacenter", cell: (peer) => foreign(peer.datacenter || "–") },
    { title: "Address", cell: (peer) => code(peer.address) },
  ];
  return panel("Peers", {}, freshness(app, "cluster/peers"), app.topic("cluster/peers").data && some("Peers", columns, rows, (peer) => `${peer.at} ${peer.id} ${peer.address}`, "Nobody has been met."));
}

function lanes(app) {
  const busy = (lane) => lane.stalled * 1e12 + lane.waiting_bytes + lane.answer_bytes + lane.in_flight;
  const rows = all(app, "cluster/lanes", "lanes").sort((a, b) => busy(b) - busy(a));
  const columns = [
    { title: "From", cell: (lane) => [app.node(lane.at), " ", foreign(lane.from, { class: "quiet" })] },
    { title: "To", cell: (lane) => [app.node(lane.node), " ", foreign(lane.to, { class: "quiet" })] },
    { title: "Link", cell: (lane) => badge(lane.connected ? "good" : "bad", lane.connected ? "up" : "down") },
    { title: "In flight", number: true, cell: (lane) => count(lane.in_flight) },
    { title: "Waiting", number: true, cell: (lane) => bytes(lane.waiting_bytes) },
    { title: "Answers", number: true, cell: (lane) => bytes(lane.answer_bytes) },
    { title: "Stalled", number: true, cell: (lane) => count(lane.stalled) },
  ];
  const silent = app.answers("cluster/lanes").flatMap(([at, answer]) => answer.silent.map((arbiter) => [app.node(at), ` ${arbiter} `]));
  return panel("Lanes", {}, freshness(app, "cluster/lanes"), silent.length > 0 && h("p", { class: "notice warn" }, "Arbiters that did not answer: ", silent),
    app.topic("cluster/lanes").data && some("Lanes", columns, rows, (lane) => `${lane.at} ${lane.from} ${lane.node} ${lane.to}`, "There are no lanes."));
}

function some(title, columns, rows, key, none) {
  return [table(title, columns, rows.slice(0, MOST), key, { none }), rows.length > MOST && empty(`${count(rows.length - MOST)} more are not shown.`)];
}
