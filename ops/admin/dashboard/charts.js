// The drawings: lines, histograms, shares, and the map of datacenters. Each is made of numbers and short texts that it is given,
// and says in words what it shows.

import { h, svg } from "./dom.js";
import { plain, seconds, shortened } from "./format.js";

// The last values as a line, the newest at the right. `slots` values fill it; places stay empty where nothing is known.
export function sparkline(some, label, { width = 120, height = 28, fill = true, slots = some.length } = {}) {
  const values = [...Array(Math.max(0, slots - some.length)).fill(null), ...some];
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0);
  const step = width / Math.max(1, values.length - 1);
  const at = (value) => height - 2 - (most > 0 ? (value / most) * (height - 4) : 0);
  const runs = [];
  let run = [];
  values.forEach((value, index) => {
    if (value === null) {
      if (run.length) runs.push(run);
      run = [];
    } else run.push([index * step, at(value)]);
  });
  if (run.length) runs.push(run);
  const path = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const area = (points) => `${path(points)}L${points.at(-1)[0].toFixed(1)} ${height}L${points[0][0].toFixed(1)} ${height}Z`;
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    fill && runs.map((points) => svg("path", { class: "area", d: area(points) })),
    runs.map((points) => svg("path", { class: "line", d: path(points) })));
}

// How many values fell between which bounds; the last bucket has no upper bound. Only the part where there is something is drawn.
export function histogram(bounds, buckets, label, { height = 150, marks = [] } = {}) {
  const filled = buckets.map((value, at) => (value > 0 ? at : -1)).filter((at) => at >= 0);
  if (filled.length === 0) return h("p", { class: "empty" }, "Nothing has been timed yet.");
  const from = Math.max(0, filled[0] - 1);
  const to = Math.min(buckets.length - 1, filled.at(-1) + 1);
  const shown = buckets.slice(from, to + 1);
  const most = Math.max(...shown);
  const all = buckets.reduce((sum, value) => sum + value, 0);
  const [width, foot] = [600, 22];
  const step = width / shown.length;
  const bar = (value, index) => {
    const tall = (value / most) * (height - foot - 16);
    const upper = from + index < bounds.length ? `≤ ${seconds(bounds[from + index])}` : `> ${seconds(bounds.at(-1))}`;
    return svg("g", { class: "bar" },
      svg("title", {}, `${upper}: ${value} of ${all}`),
      svg("rect", { class: "ground", x: index * step, y: 0, width: step, height: height - foot }),
      svg("rect", { class: "value", x: index * step + 1, y: height - foot - tall, width: Math.max(1, step - 2), height: tall, rx: 2 }));
  };
  const every = Math.max(1, Math.ceil(shown.length / 8));
  const ticks = shown.map((_, index) => from + index).filter((at) => at < bounds.length && (at - from + 1) % every === 0);
  const place = (time) => {
    const at = bounds.findIndex((bound) => time <= bound);
    const index = at < 0 ? buckets.length - 1 : at;
    const [low, high] = [index ? bounds[index - 1] : 0, bounds[index] ?? time];
    const share = high > low ? (time - low) / (high - low) : 1;
    return (index - from + Math.min(1, share)) * step;
  };
  return svg("svg", { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    shown.map(bar),
    svg("path", { class: "axis", d: `M0 ${height - foot}H${width}` }),
    ticks.map((at) => svg("text", { class: "tick", x: Math.min(width - 2, (at - from + 1) * step), y: height - 6, "text-anchor": "end" },
      seconds(bounds[at]))),
    marks.filter(([, time]) => time !== null).map(([name, time]) => svg("g", { class: "mark" },
      svg("path", { d: `M${place(time)} 0V${height - foot}` }),
      svg("text", { x: Math.min(width - 30, place(time) + 4), y: 11 }, name))));
}

// The parts of a whole side by side; `parts` are pairs of a class and a number.
export function shares(parts, label) {
  const all = parts.reduce((sum, [, value]) => sum + value, 0);
  let at = 0;
  return svg("svg", { class: "shares", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("rect", { class: "ground", width: 100, height: 6 }),
    parts.map(([kind, value]) => {
      const x = at;
      const width = all > 0 ? (value / all) * 100 : 0;
      at += width;
      return svg("rect", { class: kind, x, width, height: 6 });
    }));
}

// The datacenters around the one that this node is in, and the links to them.
export function links(own, others, label) {
  const [width, height] = [960, others.length > 2 ? 400 : 130];
  const middle = { x: width / 2, y: height / 2 };
  const place = (index) => {
    const angle = others.length <= 2 ? Math.PI * (1 - index) : (2 * Math.PI * index) / others.length - Math.PI / 2;
    return { x: middle.x + Math.cos(angle) * (width / 2 - 90), y: middle.y + Math.sin(angle) * (height / 2 - 46) };
  };
  const placed = others.map((one, index) => ({ ...one, ...place(index) }));
  return svg("svg", { class: "links", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    placed.map((one) => link(middle, one)), placed.map(town), own && town({ ...own, ...middle, own: true }));
}

function link(from, to) {
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
  return svg("g", { class: `link ${to.link}` },
    svg("path", { d: `M${from.x} ${from.y}L${to.x} ${to.y}` }),
    svg("rect", { class: "label", x: x - 52, y: y - 18, width: 104, height: 36, rx: 8 }),
    svg("text", { x, y: y - 2, "text-anchor": "middle" }, to.trip),
    svg("text", { class: "small", x, y: y + 12, "text-anchor": "middle" }, to.reached));
}

function town({ x, y, name, place, standing, own }) {
  return svg("g", { class: `town ${standing}${own ? " own" : ""}` },
    svg("title", {}, plain(name)),
    svg("rect", { x: x - 78, y: y - 34, width: 156, height: 68, rx: 12 }),
    svg("circle", { cx: x - 60, cy: y - 14, r: 5 }),
    svg("text", { class: "name", x: x - 48, y: y - 9 }, shortened(name, 14)),
    svg("text", { class: "small", x: x - 60, y: y + 8 }, shortened(place, 22)),
    svg("text", { class: "small", x: x - 60, y: y + 23 }, standing + (own ? " · here" : "")));
}
