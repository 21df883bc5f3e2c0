// Elements, and how a drawn screen becomes the next one without what the reader holds (focus, selection, scroll) being lost.
// Invariant: text is only ever given to the page as text. There is no way here to make markup out of it.

import { plain } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "oninput", "onchange", "onsubmit", "onkeydown"];

export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (HANDLERS.includes(name)) element[name] = value;
    else if (name === "key") element.setAttribute("data-key", plain(value));
    else if (name === "value") element.value = value;
    else if (allowed(name)) element.setAttribute(name, value === true ? "" : plain(value));
    else throw new Error(`no attribute ${name}`);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(plain(child)))));
  return element;
}

// Handlers are functions and never text; styles are in the style sheet; addresses are made in few places.
function allowed(name) {
  return !/^on|^style$|^src|^formaction$|^xlink/i.test(name);
}

// Makes what is in `place` look like `fresh`, and keeps every element that can stay.
export function draw(place, ...fresh) {
  children(place, fresh.flat(Infinity).filter(Boolean));
}

function children(place, fresh) {
  const keyed = new Map();
  for (const child of place.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = place.firstChild;
  for (const next of fresh) {
    const key = keyOf(next);
    const old = key ? keyed.get(key) : at && !keyOf(at) ? at : null;
    if (old && old.nodeType === next.nodeType && old.nodeName === next.nodeName) {
      if (old === at) at = at.nextSibling;
      else place.insertBefore(old, at);
      become(old, next);
      keyed.delete(key);
    } else {
      place.insertBefore(next, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function become(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of HANDLERS) old[name] = next[name];
  children(old, [...next.childNodes]);
  // Whatever somebody is typing stays; what was chosen is told by whoever draws.
  if (old.nodeName === "SELECT" && document.activeElement !== old) old.value = next.value;
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
}
