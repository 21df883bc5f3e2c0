// Numbers, times and foreign text as people read them. It decides how things are written and knows nothing of what they are.
// Invariant: what comes out of `plain` is seen as it is: nothing in it is invisible or turns the order of what stands beside it.

export const NOTHING = "–";

const whole = new Intl.NumberFormat("en");

export function count(number) {
  return number === null || number === undefined ? NOTHING : whole.format(number);
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// Three digits that count, and a unit.
function scaled(number, steps) {
  const [step, unit] = steps.find(([least]) => number >= least) ?? steps.at(-1);
  const value = number / step;
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit}`;
}

export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined) return NOTHING;
  if (perSecond < 0.005) return "0 /s";
  return scaled(perSecond, [[1e9, "G /s"], [1e6, "M /s"], [1e3, "k /s"], [1, " /s"]]);
}

export function seconds(time) {
  if (time === null || time === undefined || !Number.isFinite(time)) return NOTHING;
  if (time === 0) return "0 s";
  return scaled(time, [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]]);
}

export function millis(time) {
  return time === null || time === undefined ? NOTHING : seconds(time / 1000);
}

export function bytes(number) {
  return number < 1024 ? `${number} B` : scaled(number, [[1 << 30, " GiB"], [1 << 20, " MiB"], [1 << 10, " KiB"]]);
}

// How long ago something was, roughly.
export function age(ms) {
  const time = Math.max(0, ms) / 1000;
  if (time < 1) return "now";
  if (time < 120) return `${Math.floor(time)} s`;
  if (time < 7200) return `${Math.floor(time / 60)} min`;
  return `${Math.floor(time / 3600)} h`;
}

export function clock(unixMs) {
  return new Date(unixMs).toLocaleTimeString("en-GB");
}

// Characters that control, that are not seen, or that turn the order of what follows.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;

export function plain(text) {
  return String(text).replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

export function shortened(text, most) {
  const points = Array.from(plain(text));
  return points.length <= most ? points.join("") : `${points.slice(0, most - 1).join("")}…`;
}

// A list of whole numbers in few words: 0–3, 7.
export function spans(numbers) {
  const parts = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
