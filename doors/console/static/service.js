// What the page asks the console for, and how it follows the facts.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function read(response) {
  const text = await response.text();
  let data = {};
  try {
    data = JSON.parse(text);
  } catch {
    data = { error: text };
  }
  if (!response.ok) throw new Refused(response.status, data.error || `HTTP ${response.status}`);
  return data;
}

export const get = async (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const search = new URLSearchParams(given).toString();
  return read(await fetch(`/api/${path}${search ? `?${search}` : ""}`, { cache: "no-store" }));
};

export const post = async (path, body = {}, options = {}) =>
  read(
    await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "x-ovos-tools": "1" },
      body: JSON.stringify(body),
      ...options,
    }),
  );

// The stop has its own request and its own time, and needs nothing of what the rest of the page knows.
const STOP_WAIT_MS = 1000;

export async function stop() {
  const begun = performance.now();
  try {
    const answer = await post("stop", {}, { signal: AbortSignal.timeout(STOP_WAIT_MS), keepalive: true });
    const ms = Math.round(performance.now() - begun);
    const toolboxes = answer.toolboxes || [];
    return { ms, toolboxes, confirmed: toolboxes.every((toolbox) => toolbox.ok) };
  } catch (error) {
    return { toolboxes: [], confirmed: false, error: error.message };
  }
}

// Follows the facts. `on` gets `live(boolean)`, `fact(time_us, line)` and `reset()`. A hidden page does not follow.
export function follow(on) {
  let source = null;
  const close = () => {
    if (source) source.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource("/api/facts");
    source.addEventListener("begun", () => {
      on.live(true);
      on.reset();
    });
    source.addEventListener("reset", () => on.reset());
    source.addEventListener("message", (event) => {
      const { time_us, line } = JSON.parse(event.data);
      on.fact(time_us, line);
    });
    source.addEventListener("error", () => {
      on.live(false);
      // A browser gives up after an answer that is no stream, such as that of a proxy.
      if (source && source.readyState === EventSource.CLOSED) setTimeout(() => source && open(), 1000);
    });
  };
  const seen = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", seen);
  open();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    close();
  };
}

export const millis = (us) =>
  us < 10_000 ? `${(us / 1000).toFixed(1)} ms` : us < 1_000_000 ? `${Math.round(us / 1000)} ms` : us < 60_000_000 ? `${(us / 1e6).toFixed(1)} s` : `${Math.floor(us / 60e6)} min ${Math.round(us / 1e6) % 60} s`;
export const clock = (us) => new Date(us / 1000).toLocaleString("sv-SE");

// The ids of the calls with which the page looks at a machine, again and again: the history does not keep those that read.
const LOOK = "console-look-";
export const lookId = () => LOOK + crypto.randomUUID();

// A call as the history has it; the facts that arrived meanwhile stay.
export function takeCall(calls, call) {
  const known = calls.get(call.call);
  if (!known) {
    calls.set(call.call, { ...call, number: call.call });
    return;
  }
  const numbers = new Set(known.facts.map((fact) => fact.number));
  known.facts = [...call.facts.filter((fact) => !numbers.has(fact.number)), ...known.facts].sort((a, b) => a.number - b.number);
}

// The calls that facts tell of, by number.
export function takeFact(calls, time_us, line) {
  if (line.start) {
    calls.clear();
    return;
  }
  const { number, at_us, fact, call, ...data } = line;
  if (!call || (call.call_id || "").startsWith(LOOK)) return;
  // Of a call whose beginning is not known here there is nothing to draw.
  const known = calls.get(call.number) || (fact === "received" && { ...call, started_us: time_us, facts: [] });
  if (!known) return;
  if (known.facts.some((other) => other.number === number)) return;
  known.facts.push({ number, time_us, fact, data });
  if (fact === "received" && data.asked) known.source = data.asked.source;
  if (fact === "policy") known.principal = data.principal;
  if (fact === "answered") {
    known.ended_us = time_us;
    known.ok = data.answer.ok;
    known.outcome = data.answer.outcome || known.outcome;
    known.error = data.answer.error || known.error;
  }
  if (fact === "refused") Object.assign(known, { ok: false, outcome: "refused", error: data.error });
  calls.set(call.number, known);
}
