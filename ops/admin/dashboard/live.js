// The events of the node as they happen. They are read as a stream, because the browser's own reader of events cannot send the
// token. At most MOST are kept; what a reader who was away has missed is said.

import { follow } from "./api.js";

const MOST = 500;
const LONGEST_WAIT = 10_000;
// Browsers open few connections to one server: tabs that nobody looks at must not hold them.
const HIDDEN_FOR = 30_000;

export class Live {
  constructor(changed) {
    this.changed = changed;
    this.events = [];
    this.state = "begins";
    this.reason = "";
    this.count = 0;
    this.failures = 0;
    this.abort = null;
    this.timer = null;
    document.addEventListener("visibilitychange", () => this.looked());
    this.begin();
  }

  again() {
    this.state = "begins";
    this.failures = 0;
    this.abort?.abort();
    clearTimeout(this.timer);
    this.begin();
  }

  looked() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.rest(), HIDDEN_FOR);
    else if (this.state === "rests") this.again();
  }

  rest() {
    this.state = "rests";
    this.abort?.abort();
    clearTimeout(this.timer);
    this.note({ type: "page", text: "the page was hidden and did not follow the events" });
  }

  async begin() {
    const abort = new AbortController();
    this.abort = abort;
    try {
      const response = await follow("events", abort.signal);
      this.state = "live";
      this.failures = 0;
      this.changed();
      await this.readAll(response.body.getReader());
      this.reason = "the node has ended the stream";
    } catch (error) {
      this.reason = error.message;
    }
    if (this.abort !== abort || this.state === "rests") return;
    this.state = "off";
    this.failures += 1;
    this.changed();
    this.timer = setTimeout(() => this.begin(), Math.min(LONGEST_WAIT, 1000 * this.failures));
  }

  async readAll(reader) {
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop();
      blocks.forEach((block) => this.take(block));
    }
  }

  take(block) {
    const data = block.split("\n").find((line) => line.startsWith("data: "));
    if (!data) return;
    try {
      this.note(JSON.parse(data.slice(6)));
    } catch {
      this.note({ type: "page", text: "an event could not be read" });
    }
  }

  note(event) {
    this.count += 1;
    this.events.unshift({ number: this.count, at: Date.now(), event });
    this.events.length = Math.min(this.events.length, MOST);
    this.changed();
  }
}
