// The page: which screen is shown, what it asks for, and what the keys do. Screens draw; this decides when.
// Invariant: whatever a screen draws is made of the last answers alone, so that drawing it once more changes nothing.

import { askToken, open } from "./act.js";
import { hasToken, useToken } from "./api.js";
import { draw, h } from "./dom.js";
import { age, plain } from "./format.js";
import { Live } from "./live.js";
import { badge, foreign, notice } from "./parts.js";
import { Poll } from "./poll.js";
import { PATH as MESSAGES, Rates } from "./rates.js";
import actors from "./screens/actors.js";
import config from "./screens/config.js";
import datacenters from "./screens/datacenters.js";
import events from "./screens/events.js";
import letters from "./screens/letters.js";
import members from "./screens/members.js";
import messages from "./screens/messages.js";
import overview from "./screens/overview.js";
import peers from "./screens/peers.js";
import shards from "./screens/shards.js";

const SCREENS = [overview, members, shards, actors, messages, datacenters, peers, letters, events, config];
const THEMES = ["system", "light", "dark"];
// What is asked for whatever is shown: who there is, and how much they do.
const ALWAYS = [["node", 4000], ["cluster/node", 2000], [MESSAGES, 2000]];

const main = document.getElementById("main");
let theme = "system";
let due = false;
let shown = null;

const app = {
  poll: new Poll(() => later()),
  live: new Live(() => later()),
  rates: new Rates(),
  names: new Map(),
  route: [],
  topic: (path) => app.poll.topic(path),
  isStale: (path) => app.poll.isStale(path),
  get paused() { return app.poll.paused; },
  // The answers of the members: pairs of an id and what it says.
  answers: (path) => (app.topic(path).data?.answers ?? []).map(({ node, answer }) => [node, answer]),
  own: () => app.topic("node").data?.id ?? null,
  name: (id) => app.names.get(id) || id,
  node: (id) => foreign(app.name(id), { class: "node", title: id }),
  redraw: () => later(),
  // What the screen wants may have changed, too.
  again: () => { wish(); later(); },
};

app.poll.listen(MESSAGES, (data) => app.rates.take(data));
app.poll.listen("cluster/node", ({ answers }) => answers.forEach(({ node, answer }) => app.names.set(node, answer.name)));
for (const one of SCREENS) one.begin?.(app);

function screen() {
  return SCREENS.find((one) => one.id === app.route[0]) ?? overview;
}

function wish() {
  app.poll.want([...ALWAYS, ...screen().wants(app)]);
}

function later() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    render();
  });
}

function render() {
  const now = screen();
  drawNavigation(now);
  drawStatus();
  const stale = app.topic("node").error !== null;
  main.classList.toggle("stale", stale);
  main.dataset.screen = now.id;
  draw(main, h("div", { class: "screen", key: now.id },
    h("div", { class: "head" }, h("h1", {}, now.title), h("p", { class: "lead" }, now.lead)), outage(), now.view(app)));
}

// The node that serves this page is the only one that it can ask.
function outage() {
  const { error, at, data } = app.topic("node");
  if (!error) return null;
  if (error.status === 401) {
    return h("p", { class: "notice warn", key: "locked" }, "This node shows nothing without its token. ",
      h("button", { class: "primary", onclick: unlock }, "Give the token"));
  }
  const since = data ? `What you see is ${age(Date.now() - at)} old.` : "";
  return notice("bad", `The node of this page: ${error.message}. ${since}`);
}

function unlock() {
  askToken("What this node shows needs its admin token.", () => {
    app.live.again();
    app.poll.refresh();
    later();
  });
}

function drawNavigation(now) {
  draw(document.getElementById("screens"), SCREENS.map((one, index) => h("a", {
    href: `#${one.id}`, key: one.id, "aria-current": one === now ? "page" : null, title: `key ${keyOf(index)}`,
  }, one.title, h("kbd", { "aria-hidden": "true" }, keyOf(index)))));
  document.title = `${now.title} · archipelago`;
}

function drawStatus() {
  const { data: node, error } = app.topic("node");
  const state = error ? ["bad", "no answer"] : app.paused ? ["warn", "paused"] : node ? ["good", "live"] : ["", "asking"];
  const button = (text, hint, onclick, pressed = null) => h("button", { title: hint, onclick, "aria-pressed": pressed, key: text.split(":")[0] }, text);
  draw(document.getElementById("status"),
    h("div", { class: "served", key: "served" }, badge(state[0], state[1]), " ", node && foreign(node.name || node.id, { title: node.id })),
    h("div", { class: "switches", key: "switches" },
      button(app.paused ? "Resume" : "Pause", "key p", pause),
      button(`Theme: ${theme}`, "key t", nextTheme),
      hasToken() && button("Forget token", "from this tab", () => { useToken(""); app.live.again(); app.poll.refresh(); later(); }),
      button("Keys", "key ?", help)));
}

function keyOf(index) {
  return `${(index + 1) % 10}`;
}

function pause() {
  app.poll.paused = !app.poll.paused;
  app.poll.step();
  later();
}

function nextTheme() {
  useTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  try {
    localStorage.setItem("archipelago.theme", theme);
  } catch {
    // It lasts until the page is closed.
  }
  later();
}

function useTheme(wanted) {
  theme = THEMES.includes(wanted) ? wanted : "system";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function help() {
  const keys = [...SCREENS.map((one, index) => [keyOf(index), one.title]), ["/", "search or filter"], ["r", "ask again at once"],
    ["p", "pause, resume"], ["t", "theme: system, light, dark"], ["?", "this list"], ["Esc", "close"]];
  const dialog = open("Keys", h("dl", { class: "keys" }, keys.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))),
    h("div", { class: "buttons" }, h("button", { onclick: () => dialog.close() }, "Close")));
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const { target, key } = event;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.nodeName)) {
    if (key === "Escape") target.blur();
    return;
  }
  const at = SCREENS.findIndex((_, index) => keyOf(index) === key);
  const does = { p: pause, t: nextTheme, "?": help, r: () => app.poll.refresh(), "/": () => main.querySelector("input")?.focus() }[key];
  if (at >= 0) location.hash = SCREENS[at].id;
  else if (does) does();
  else return;
  event.preventDefault();
}

function routed() {
  app.route = location.hash.slice(1).split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return plain(part);
    }
  });
  wish();
  render();
  const now = screen();
  // Whoever goes to another screen begins at its top; the first one leaves the focus where it is.
  if (shown && shown !== now) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = now;
}

try {
  useTheme(localStorage.getItem("archipelago.theme"));
} catch {
  // Then the system's.
}
document.getElementById("skip").onclick = (event) => { event.preventDefault(); main.focus(); };
addEventListener("hashchange", routed);
addEventListener("keydown", pressed);
// Ages grow by themselves.
setInterval(later, 1000);
routed();
