// Rates and quantiles of messages. The API counts since a node began; this takes the differences between two answers, by the
// node's own clock, and remembers five minutes of them. A node that began anew begins anew here, too.

const KEPT = 150;
// Quantiles look back over so many answers: one message in 64 is timed, so two seconds say little.
const LOOK_BACK = 30;
// As many types of messages as a node lists at most.
const MOST_LISTED = 1000;
// What is asked for.
export const PATH = `cluster/messages?limit=${MOST_LISTED}`;

export class Rates {
  constructor() {
    this.nodes = new Map();
    this.history = [];
    this.bounds = [];
  }

  // Takes an answer to it.
  take({ answers }) {
    const now = Date.now();
    const here = new Set(answers.map(({ node }) => node));
    for (const id of this.nodes.keys()) if (!here.has(id)) this.nodes.delete(id);
    for (const { node, answer } of answers) this.takeOne(node, answer);
    const rows = this.rows();
    const total = sum(rows);
    this.history.push({ at: now, rate: total.rate, p99: total.p99 });
    this.history.splice(0, this.history.length - KEPT);
    for (const row of rows) {
      const kept = (this.lines ??= new Map()).get(row.id) ?? [];
      kept.push(row.rate ?? 0);
      kept.splice(0, kept.length - KEPT);
      this.lines.set(row.id, kept);
    }
  }

  takeOne(id, { uptime_seconds: uptime, bounds_seconds: bounds, messages, silent }) {
    // The counts of an arbiter that does not answer are missing from the sums: they would seem to go back and to jump.
    if (silent.length > 0 && this.nodes.has(id)) return;
    this.bounds = bounds;
    const counts = new Map(messages.map((one) => [`${one.kind}\n${one.message}`, one]));
    let node = this.nodes.get(id);
    if (!node || uptime < node.samples.at(-1).uptime) {
      node = { samples: [] };
      this.nodes.set(id, node);
    }
    node.samples.push({ uptime, counts });
    node.samples.splice(0, node.samples.length - LOOK_BACK - 1);
  }

  // One row per kind and message, over all nodes or one of them.
  rows(only = null) {
    const rows = new Map();
    for (const [id, { samples }] of this.nodes) {
      if (only && id !== only) continue;
      const [last, before, first] = [samples.at(-1), samples.at(-2), samples[0]];
      for (const [key, one] of last.counts) this.add(rows, key, one, { last, before, first });
    }
    return [...rows.values()].map((row) => ({ ...row, ...quantiles(this.bounds, row) }))
      .sort((a, b) => (b.rate ?? 0) - (a.rate ?? 0) || b.started - a.started);
  }

  add(rows, key, one, { last, before, first }) {
    const row = rows.get(key) ?? fresh(key, one);
    rows.set(key, row);
    // One that was not among those listed before may have a long past.
    const unlisted = before && before.counts.size >= MOST_LISTED ? one.started : 0;
    const earlier = before?.counts.get(key)?.started ?? unlisted;
    const passed = before ? last.uptime - before.uptime : 0;
    if (passed > 0) row.rate = (row.rate ?? 0) + Math.max(0, one.started - earlier) / passed;
    row.started += one.started;
    row.sampled += one.sampled;
    row.seconds += one.mean_seconds * one.sampled;
    row.slowest = Math.max(row.slowest, one.slowest_seconds);
    const then = samplesBefore(first, last, key);
    one.buckets.forEach((value, at) => {
      row.buckets[at] = (row.buckets[at] ?? 0) + value;
      row.recent[at] = (row.recent[at] ?? 0) + Math.max(0, value - (then?.buckets[at] ?? 0));
    });
  }

  line(id) {
    return this.lines?.get(id) ?? [];
  }
}

// All rows as one.
export function sum(rows, bounds = null) {
  const total = { rate: null, started: 0, sampled: 0, slowest: 0, buckets: [], recent: [], p99: null };
  for (const row of rows) {
    if (row.rate !== null) total.rate = (total.rate ?? 0) + row.rate;
    total.started += row.started;
    total.sampled += row.sampled;
    total.slowest = Math.max(total.slowest, row.slowest);
    row.buckets.forEach((value, at) => (total.buckets[at] = (total.buckets[at] ?? 0) + value));
    row.recent.forEach((value, at) => (total.recent[at] = (total.recent[at] ?? 0) + value));
  }
  return { ...total, ...quantiles(bounds ?? rows[0]?.bounds ?? [], total) };
}

function samplesBefore(first, last, key) {
  return first === last ? null : first.counts.get(key);
}

function fresh(key, one) {
  const { kind, message } = one;
  return { id: key, kind, message, rate: null, started: 0, sampled: 0, seconds: 0, slowest: 0, buckets: [], recent: [] };
}

// Of the last minute if anything was timed then, else of all that is known.
function quantiles(bounds, row) {
  const some = row.recent.some((value) => value > 0) ? row.recent : row.buckets;
  const at = (share) => quantile(bounds, some, share, row.slowest);
  return { bounds, p50: at(0.5), p99: at(0.99), mean: row.sampled > 0 ? row.seconds / row.sampled : null };
}

function quantile(bounds, buckets, share, slowest) {
  const all = buckets.reduce((sum, value) => sum + value, 0);
  if (all === 0) return null;
  let rest = share * all;
  for (const [at, value] of buckets.entries()) {
    if (value > 0 && rest <= value) {
      const from = at === 0 ? 0 : bounds[at - 1];
      const to = at < bounds.length ? bounds[at] : Math.max(slowest, from);
      return Math.min(from + ((to - from) * rest) / value, slowest || Infinity);
    }
    rest -= value;
  }
  return slowest || null;
}
