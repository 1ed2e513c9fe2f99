// Plans and timelines, drawn.
import { html } from "/vendor/htm-preact.js";
import { T } from "/texts.js";
import { millis } from "/service.js";

const BOX = { width: 168, height: 46, across: 60, down: 16, top: 26 };

// The waves of a plan from left to right; a wave already is a column. `states` are the words of running actions by id.
export function Plan({ waves, states = {} }) {
  const places = new Map();
  waves.forEach((wave, column) =>
    wave.forEach((action, row) => {
      const x = column * (BOX.width + BOX.across) + 2;
      const y = BOX.top + row * (BOX.height + BOX.down) + 2;
      places.set(action.id, { action, x, y });
      if (!places.has(action.name)) places.set(action.name, { action, x, y });
    }),
  );
  const rows = Math.max(1, ...waves.map((wave) => wave.length));
  const width = waves.length * (BOX.width + BOX.across) - BOX.across + 4;
  const height = BOX.top + rows * (BOX.height + BOX.down);
  const edges = waves.flatMap((wave) =>
    wave.flatMap((action) =>
      (action.dependencies || []).filter((id) => places.has(id)).map((id) => {
        const from = places.get(id);
        const to = places.get(action.id);
        const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
        return `M${x1} ${y1}C${x1 + BOX.across / 2} ${y1} ${x2 - BOX.across / 2} ${y2} ${x2} ${y2}`;
      }),
    ),
  );
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const label = waves.map((wave, at) => `${T.plan.wave(at + 1)}: ${wave.map((action) => action.id).join(", ")}`).join(". ");
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${T.plan.title}>
    <svg class="plan" role="img" aria-label=${label} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
      ${waves.map((_, at) => html`<text class="wave" x=${at * (BOX.width + BOX.across) + 2} y="16">${T.plan.wave(at + 1)}</text>`)}
      ${edges.map((path) => html`<path class="edge" d=${path} />`)}
      ${waves.flat().map((action) => {
        const { x, y } = places.get(action.id);
        return html`<g class=${`action ${states[action.id] || "waiting"}`}>
          <rect x=${x} y=${y} width=${BOX.width} height=${BOX.height} rx="6" />
          <text x=${x + 10} y=${y + 19}>${cut(action.id, 22)}</text>
          <text class="small" x=${x + 10} y=${y + 36}>${cut((action.subsystems || []).join(", ") || action.effect || "", 26)}</text>
        </g>`;
      })}
    </svg>
  </div>`;
}

// The actions of a call, from its facts.
export function actionsOf(call) {
  const actions = [];
  for (const { fact, time_us, data } of call.facts) {
    if (fact === "action_started") actions.push({ id: data.action, wave: data.wave, start: time_us - call.started_us });
    if (fact === "action_ended") {
      const end = time_us - call.started_us;
      const begun = actions.find((action) => action.id === data.action && action.end === undefined);
      if (begun) Object.assign(begun, { end, outcome: data.outcome });
      else actions.push({ id: data.action, wave: data.wave, start: end, end, outcome: data.outcome });
    }
  }
  return actions.sort((a, b) => a.wave - b.wave);
}

// A bar for each action, wave by wave. A call that runs grows up to `now_us`.
export function Timeline({ call, now_us }) {
  const actions = actionsOf(call);
  const last = Math.max(0, ...call.facts.map((fact) => fact.time_us - call.started_us));
  const whole = Math.max(1, call.ended_us ? call.ended_us - call.started_us : Math.max(last, now_us - call.started_us));
  const percent = (us) => `${Math.min(100, Math.max(0, (us / whole) * 100))}%`;
  let wave = 0;
  const rows = actions.flatMap((action) => {
    const end = action.end ?? whole;
    const outcome = action.outcome || T.outcome.running;
    const row = html`<li>
      <span class="name">${action.id}</span>
      <span class="track" aria-hidden="true"
        ><span class=${`bar ${outcome}`} style=${{ left: percent(action.start), width: percent(Math.max(end - action.start, whole / 200)) }}></span
      ></span>
      <span class=${`end ${outcome}`}>${outcome} <small>${millis(end - action.start)}</small></span>
    </li>`;
    if (action.wave === wave) return [row];
    wave = action.wave;
    return [html`<li class="wave">${T.plan.wave(wave)}</li>`, row];
  });
  const marks = [0, 0.25, 0.5, 0.75, 1];
  return html`<ol class="timeline">
    ${rows}
    <li class="axis" aria-hidden="true"><span></span><span class="marks">${marks.map((mark) => html`<small>${mark ? millis(mark * whole) : "0"}</small>`)}</span></li>
  </ol>`;
}
