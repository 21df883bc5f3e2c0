// Who is a member, as the node of this page sees it, and what the others say about them. Those who went are remembered for as long
// as the page is open.

import { confirmAct } from "../act.js";
import { h } from "../dom.js";
import { clock, count, millis } from "../format.js";
import { badge, code, empty, facts, foreign, freshness, membersSeen, missing, panel, table, tint, STANDINGS } from "../parts.js";

const seen = new Map();
const MOST_GONE = 50;

export default {
  id: "members",
  title: "Members",
  lead: "Who takes part, as the node of this page sees it; the others say whom they suspect.",
  wants: () => [["cluster/members", 2000]],
  begin: (app) => app.poll.listen("cluster/members", () => remember(app)),
  view: (app) => [freshness(app, "cluster/members"), missing(app, "cluster/members"), members(app), gone(), own(app)],
};

function remember(app) {
  const now = new Set();
  for (const member of membersSeen(app)) {
    now.add(member.id);
    seen.set(member.id, { member, gone: null });
    app.names.set(member.id, member.name);
  }
  for (const [id, one] of seen) if (!now.has(id) && one.gone === null) one.gone = Date.now();
  const left = [...seen].filter(([, one]) => one.gone !== null);
  for (const [id] of left.slice(0, Math.max(0, left.length - MOST_GONE))) seen.delete(id);
}

function members(app) {
  if (!app.topic("cluster/members").data) return null;
  const state = new Map(app.answers("cluster/node"));
  const session = (member) => state.get(member.id)?.session;
  const columns = [
    { title: "Name", cell: (member) => [h("i", { class: `dot ${tint(app, member.id)}` }), foreign(member.name || NO_NAME), member.leads && badge("plain", "leads"), member.own && badge("plain", "this page"), h("div", { class: "below" }, code(member.id))] },
    { title: "Status", cell: (member) => [badge(STANDINGS[member.status], member.status), member.suspectedBy.length > 0 && badge("bad", "suspect")] },
    { title: "Session", cell: (member) => (session(member) ? [badge(STANDINGS[session(member).standing], session(member).standing), h("small", {}, ` ${millis(session(member).serving_for_ms)}`)] : badge("bad", "no answer")) },
    { title: "Silence φ", number: true, cell: (member) => (member.phi === null ? "–" : member.phi.toFixed(2)) },
    { title: "Seen by", number: true, cell: (member) => `${member.seenBy} of ${member.asked}` },
    { title: "Suspected by", cell: (member) => (member.suspectedBy.length ? member.suspectedBy.map((id) => [app.node(id), " "]) : "nobody") },
    { title: "Actors", number: true, cell: (member) => count(member.load?.activations) },
    { title: "Waiting", number: true, cell: (member) => count(member.load?.waiting) },
    { title: "Address", cell: (member) => code(member.address) },
    { title: "Roles", cell: (member) => foreign(member.roles.join(", ") || "–") },
    { title: "Version", cell: (member) => foreign(member.version || "–") },
  ];
  return panel("Members", { "data-count": membersSeen(app).length }, table("Members of the cluster", columns, membersSeen(app), (member) => member.id));
}

function gone() {
  const left = [...seen.values()].filter((one) => one.gone !== null).reverse();
  if (left.length === 0) return null;
  const columns = [
    { title: "Name", cell: (one) => foreign(one.member.name || NO_NAME) },
    { title: "Gone since", cell: (one) => clock(one.gone) },
    { title: "Last status", cell: (one) => badge("bad", one.member.status) },
    { title: "Address", cell: (one) => code(one.member.address) },
    { title: "Id", cell: (one) => code(one.member.id) },
  ];
  return panel("Gone since you opened this page", { "data-gone": "" }, table("Members that are gone", columns, left, (one) => one.member.id));
}

function own(app) {
  const { data: node } = app.topic("node");
  if (!node) return null;
  const leave = () => confirmAct({
    title: "Stop this node",
    text: "Its shards go to others, its work is finished and it leaves the cluster. This page ends with it: open that of another node.",
    path: "node/leave",
    done: ({ outcome }) => outcome,
  });
  return panel("The node of this page", { aside: h("button", { class: "danger", onclick: leave }, "Stop this node …") },
    node.session.stopping && empty("It is stopping."),
    facts([["Name", foreign(node.name || NO_NAME)], ["Namespace", foreign(node.namespace)], ["Address", code(node.address)], ["Leader", node.leader ? app.node(node.leader) : "nobody"],
      ["Session may serve for", millis(node.session.serving_for_ms)], ["Time to live", millis(node.session.ttl_ms)], ["Heartbeat", millis(node.session.heartbeat_ms)]]));
}

const NO_NAME = "(no name)";
