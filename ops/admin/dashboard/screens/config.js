// What the nodes were configured with, side by side: where they differ is what one looks for.

import { h } from "../dom.js";
import { count, plural } from "../format.js";
import { badge, code, empty, field, foreign, freshness, missing, notice, panel, select, table } from "../parts.js";

const PATH = "cluster/config";
const state = { filter: "", show: "all" };

export default {
  id: "config",
  title: "Configuration",
  lead: "What the nodes were told. Secrets are masked before they leave a node.",
  wants: () => [[PATH, 15_000]],
  view: (app) => [freshness(app, PATH), missing(app, PATH), ...(app.topic(PATH).data ? [toolbar(app), list(app)] : [])],
};

function toolbar(app) {
  return h("div", { class: "toolbar", key: "toolbar" },
    field("Show", select([["all", "all keys"], ["different", "keys in which nodes differ"]], state.show, (show) => { state.show = show; app.redraw(); }, { name: "show" })),
    field("Key or value", h("input", { type: "search", name: "filter", value: state.filter, autocomplete: "off", placeholder: "press / to filter", oninput: (event) => { state.filter = event.target.value; app.redraw(); } })));
}

// Each key with the values it has, and who has them.
function keys(nodes) {
  const names = new Set(nodes.flatMap(([, { values }]) => Object.keys(values)));
  return [...names].sort().map((name) => {
    const groups = new Map();
    for (const [id, { values }] of nodes) {
      const value = Object.hasOwn(values, name) ? values[name] : null;
      groups.set(value, [...(groups.get(value) ?? []), id]);
    }
    return { name, groups: [...groups] };
  });
}

function list(app) {
  const answers = app.answers(PATH);
  const untold = answers.filter(([, { known }]) => !known);
  const all = keys(answers.filter(([, { known }]) => known));
  const wanted = all.filter(({ name, groups }) => (state.show === "all" || groups.length > 1)
    && `${name} ${groups.map(([value]) => value).join(" ")}`.toLowerCase().includes(state.filter.toLowerCase()));
  const value = ([text, ids], alone) => h("div", {}, text === null ? h("span", { class: "quiet" }, "not set") : text === "" ? h("span", { class: "quiet" }, "empty") : code(text), !alone && [" ", ids.map((id) => [app.node(id), " "])]);
  const columns = [
    { title: "Key", cell: (one) => [foreign(one.name), one.groups.length > 1 && badge("warn", "differs")] },
    { title: "Value", wide: true, cell: (one) => one.groups.map((group) => value(group, one.groups.length === 1)) },
  ];
  return panel("Keys", { "data-count": all.length, aside: h("span", { class: "quiet" }, `${count(wanted.length)} of ${plural(all.length, "key")}`) },
    untold.length > 0 && notice("warn", "Nobody told the API what these were configured with: ", untold.map(([id]) => [app.node(id), " "])),
    wanted.length ? table("Configuration", columns, wanted, (one) => one.name) : empty("No key fits."));
}
