// What is asked of the API, and how often. A screen says what it wants; this asks for it, no more than RATE times a second
// whatever it wants, keeps the last answers, and knows how old they are. Nothing is asked while nobody looks.

import { read } from "./api.js";

const RATE = 4;
const STEP = 200;
const MOST_KEPT = 64;

export class Poll {
  constructor(changed) {
    this.changed = changed;
    this.topics = new Map();
    this.wanted = new Map();
    this.listeners = new Map();
    this.allowance = RATE;
    this.notBefore = 0;
    this.paused = false;
    this.asked = 0;
    setInterval(() => this.step(), STEP);
    document.addEventListener("visibilitychange", () => this.step());
  }

  // From now on these are wanted: pairs of a path and a time in milliseconds.
  want(pairs) {
    this.wanted = new Map(pairs);
    this.step();
  }

  // Calls back with every new answer to `path`.
  listen(path, heard) {
    this.listeners.set(path, heard);
  }

  // What is known: data if there is any, when it came, and what went wrong since.
  topic(path) {
    return this.topics.get(path) ?? { data: null, at: 0, error: null };
  }

  isStale(path) {
    const { data, at } = this.topic(path);
    const every = this.wanted.get(path) ?? 2000;
    return data !== null && Date.now() - at > 3 * every + 2500;
  }

  // Asks at once, whatever was known.
  refresh() {
    for (const topic of this.topics.values()) topic.next = 0;
    this.notBefore = 0;
    this.step();
  }

  step() {
    this.allowance = Math.min(RATE, this.allowance + (RATE * STEP) / 1000);
    const now = Date.now();
    if (this.paused || document.hidden || now < this.notBefore) return;
    const due = [...this.wanted.keys()].map((path) => [path, this.kept(path)])
      .filter(([, topic]) => !topic.busy && topic.next <= now)
      .sort(([, a], [, b]) => a.next - b.next);
    for (const [path, topic] of due) {
      if (this.allowance < 1) return;
      this.allowance -= 1;
      this.ask(path, topic);
    }
  }

  async ask(path, topic) {
    topic.busy = true;
    this.asked += 1;
    const every = this.wanted.get(path) ?? 2000;
    try {
      topic.data = await read(path);
      topic.at = Date.now();
      Object.assign(topic, { error: null, failures: 0, next: topic.at + every });
      this.listeners.get(path)?.(topic.data);
    } catch (error) {
      topic.error = error;
      topic.failures += 1;
      topic.next = Date.now() + Math.min(10_000, every * Math.min(topic.failures, 5));
      if (error.status === 429) this.notBefore = Date.now() + 1000 * Math.max(1, error.wait);
    } finally {
      topic.busy = false;
    }
    this.changed();
  }

  kept(path) {
    let topic = this.topics.get(path);
    if (!topic) {
      topic = { data: null, at: 0, error: null, next: 0, failures: 0, busy: false };
      this.topics.set(path, topic);
      this.forget();
    }
    return topic;
  }

  // Searches leave answers behind: the oldest that nobody wants go.
  forget() {
    for (const path of this.topics.keys()) {
      if (this.topics.size <= MOST_KEPT) return;
      if (!this.wanted.has(path)) this.topics.delete(path);
    }
  }
}
