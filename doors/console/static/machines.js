// The robots and vehicles, as their tools that read tell: joints, where they are, pictures of running pipelines. Asked for only while
// the view is looked at; the ids of these calls have a beginning that keeps them out of the history.
import { html, useEffect, useRef, useState } from "/vendor/htm-preact.js";
import { T } from "/texts.js";
import { get, lookId, post } from "/service.js";
import { Content } from "/content.js";

const EVERY_MS = 1000;
// How many places a track has.
const TRACK = 600;

// What a tool that reads returns, again and again while the page is seen. `take` gets each result.
function useWatched(tool, args, take) {
  const [state, set] = useState({});
  useEffect(() => {
    if (!tool) return;
    let gone = false;
    let timer = null;
    const look = async () => {
      if (!document.hidden) {
        try {
          const answer = await post("run", { toolbox_id: tool.toolbox_id, name: tool.name, args, call_id: lookId() });
          if (gone) return;
          const failed = answer.error || (answer.result?.success === false && answer.result.message) || (answer.result?.ok === false && answer.result.msg);
          if (answer.result) take(answer.result);
          set({ result: answer.result, error: failed || null });
        } catch (error) {
          if (!gone) set((before) => ({ ...before, error: error.message }));
        }
      }
      if (!gone) timer = setTimeout(look, EVERY_MS);
    };
    look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [tool?.toolbox_id, JSON.stringify(args)]);
  return state;
}

// A track that grows with each place that differs from the last.
function useTrack() {
  const track = useRef([]);
  return [
    track.current,
    (place) => {
      const last = track.current.at(-1);
      if (last && Math.hypot(last[0] - place[0], last[1] - place[1]) < 0.02) return;
      track.current.push(place);
      if (track.current.length > TRACK) track.current.shift();
    },
  ];
}

const NICE = [1, 2, 5];
// The distance between two lines of a map that is so many metres wide.
export function gridOf(metres) {
  const least = metres / 8;
  const ten = 10 ** Math.floor(Math.log10(least));
  return (NICE.find((nice) => nice * ten >= least) || 10) * ten;
}

// A map in metres. `track` and `corners` are pairs: to the right, and up; `heading` is in degrees clockwise from up.
export function Plot({ title, place, heading, track, home, fence, across, up }) {
  const around = [place, home, ...track].filter(Boolean);
  const bounds = fence?.corners || (fence?.radius ? [-1, 1].map((sign) => [fence.centre[0] + sign * fence.radius, fence.centre[1] + sign * fence.radius]) : []);
  const all = [...around, ...bounds];
  const of = (at) => all.map((point) => point[at]);
  const middle = [0, 1].map((at) => (all.length ? (Math.min(...of(at)) + Math.max(...of(at))) / 2 : 0));
  const wide = Math.max(4, ...[0, 1].map((at) => (all.length ? Math.max(...of(at)) - Math.min(...of(at)) : 0))) * 1.15;
  const size = 320;
  const x = (metres) => size / 2 + ((metres - middle[0]) / wide) * size;
  const y = (metres) => size / 2 - ((metres - middle[1]) / wide) * size;
  const path = (points) => points.map(([right, above], at) => `${at ? "L" : "M"}${x(right).toFixed(1)} ${y(above).toFixed(1)}`).join("");
  const step = gridOf(wide);
  const lines = (at) => {
    const first = Math.ceil((middle[at] - wide / 2) / step);
    return Array.from({ length: Math.floor((middle[at] + wide / 2) / step) - first + 1 }, (_, line) => (first + line) * step);
  };
  const label = place ? T.machines.at(title, place[0].toFixed(1), across, place[1].toFixed(1), up) : T.machines.nowhere;
  return html`<svg class="map" role="img" aria-label=${label} viewBox=${`0 0 ${size} ${size}`}>
    ${lines(0).map((at) => html`<path class="grid" d=${`M${x(at)} 0V${size}`} />`)} ${lines(1).map((at) => html`<path class="grid" d=${`M0 ${y(at)}H${size}`} />`)}
    ${fence?.radius ? html`<circle class="fence" cx=${x(fence.centre[0])} cy=${y(fence.centre[1])} r=${(fence.radius / wide) * size} />` : null}
    ${fence?.corners ? html`<path class="fence" d=${`${path(fence.corners)}Z`} />` : null}
    ${track.length > 1 ? html`<path class="way" d=${path(track)} />` : null}
    ${home ? html`<g><circle class="home" cx=${x(home[0])} cy=${y(home[1])} r="7" /><text x=${x(home[0])} y=${y(home[1]) + 4} text-anchor="middle">H</text></g>` : null}
    ${place ? html`<path class="machine" transform=${`translate(${x(place[0])} ${y(place[1])}) rotate(${heading || 0})`} d="M0 -11L8 9L0 4L-8 9Z" />` : null}
    <text class="scale" x="8" y=${size - 10}>${T.machines.scale(step)}</text>
    <text class="scale" x=${size - 8} y="18" text-anchor="end">${T.machines.up(up)}</text>
  </svg>`;
}

const number = (value, unit, digits = 1) => (typeof value === "number" ? `${value.toFixed(digits)}${unit === "°" ? "" : " "}${unit}` : "–");

// The joints of an answer of motor_status: of servos by `bus:id` with their health, or values by part and name. A servo that is silent is
// missing, and the answer's error names it.
export function jointsOf(data) {
  if (data?.motors) {
    return Object.entries(data.motors).map(([label, motor]) => ({
      part: label.split(":")[0],
      bus: true,
      name: motor.name || label,
      value: motor.position,
      unit: (motor.name || "").startsWith("lift") ? "mm" : "°",
      state: [number(motor.temperature, "°C", 0), number(motor.voltage, "V"), motor.torque ? T.machines.powered : T.machines.limp, ...(motor.alarms || [])].join(" · "),
      bad: (motor.alarms || []).length > 0,
      moving: motor.moving === true,
    }));
  }
  return Object.entries(data?.positions || {}).flatMap(([part, of]) =>
    typeof of === "number"
      ? [{ part, name: part, value: of, unit: part === "lift" ? "mm" : "°", state: "" }]
      : Object.entries(of || {}).map(([name, value]) => ({ part, name, value, unit: part === "lift" ? "mm" : "°", state: "" })),
  );
}

// An angle from 0° to 360°, as a wheel has it, as a turn to one side or the other: each half of a dial holds half a turn.
const turned = (degrees) => -(((((180 - degrees) % 360) + 360) % 360) - 180);

function Joints({ joints }) {
  const parts = [...new Set(joints.map((joint) => joint.part))];
  return html`<div class="joints">
    ${parts.map((part) => {
      const of = joints.filter((joint) => joint.part === part);
      return html`<table>
        <caption>
          ${of[0].bus ? T.machines.bus(part) : part}
        </caption>
        <thead class="unseen">
          <tr>
            <th scope="col">${T.machines.joint}</th>
            <th scope="col">${T.machines.position}</th>
            <th scope="col">${T.machines.state}</th>
          </tr>
        </thead>
        <tbody>
          ${of.map((joint) => {
            const whole = joint.unit === "mm" ? 400 : 360;
            const drawn = joint.unit === "°" ? turned(joint.value) : joint.value;
            const share = typeof joint.value === "number" ? Math.min(50, (Math.abs(drawn) / whole) * 100) : 0;
            return html`<tr class=${joint.bad ? "bad" : ""}>
              <th scope="row">${joint.name}</th>
              <td>
                ${typeof joint.value === "number"
                  ? html`<span class="dialled"
                      ><span class="dial" aria-hidden="true">${share ? html`<span class="bar" style=${{ left: `${drawn < 0 ? 50 - share : 50}%`, width: `${share}%` }}></span>` : null}</span>
                      <span class="value">${number(joint.value, joint.unit)}</span></span
                    >`
                  : null}
              </td>
              <td>${joint.moving ? html`<b>${T.machines.moving}</b> ` : null}${joint.state}</td>
            </tr>`;
          })}
        </tbody>
      </table>`;
    })}
  </div>`;
}

function Robot({ app, tool, unit }) {
  const [track, put] = useTrack();
  const args = { ...(tool.argument_schema?.properties?.subsystem ? { subsystem: "all" } : {}), ...(unit ? { robot: unit } : {}) };
  const { result, error } = useWatched(tool, args, ({ data }) => data?.odometry && put([-data.odometry.y_m, data.odometry.x_m]));
  const data = result?.data;
  const joints = jointsOf(data);
  const at = data?.odometry;
  return html`<section class="card machine-card">
    <h2>${unit || tool.toolbox_id} ${data ? html`<span class=${`badge ${data.simulated ? "" : "motion"}`}>${data.simulated ? T.health.simulated : T.health.hardware}</span>` : null}</h2>
    ${error ? html`<p class="trouble" role="status">${error}</p>` : null}
    ${result || error ? null : html`<p class="loading">${T.loading}</p>`}
    <div class="sides">
      ${at
        ? html`<figure>
            <${Plot} title=${unit || tool.toolbox_id} place=${[-at.y_m, at.x_m]} heading=${-at.heading_degrees} track=${track} across=${T.machines.right} up=${T.machines.ahead} />
            <figcaption>${T.machines.odometry(at.x_m.toFixed(2), at.y_m.toFixed(2), at.heading_degrees.toFixed(0))}</figcaption>
          </figure>`
        : null}
      ${joints.length ? html`<${Joints} joints=${joints} />` : null}
    </div>
    ${result && !at && joints.length === 0 && !error ? html`<pre tabindex="0">${JSON.stringify(data ?? result, null, 2)}</pre>` : null}
  </section>`;
}

function Vehicle({ app, tool }) {
  const [track, put] = useTrack();
  const { result, error } = useWatched(tool, {}, ({ position }) => position && put([position.east_m, position.north_m]));
  const { position, home, state = {}, safety = {}, limits = {}, goal, fence } = result || {};
  const drawn = fence?.radius_m ? { radius: fence.radius_m, centre: [fence.centre_m[1], fence.centre_m[0]] } : fence?.corners_m ? { corners: fence.corners_m.map(([north, east]) => [east, north]) } : null;
  const m = T.machines;
  // The third of a row says how it is to be seen.
  const rows = [
    [m.mode, state.mode],
    [m.armed, state.armed === null || state.armed === undefined ? null : state.armed ? m.yes : m.no, state.armed ? "warn" : ""],
    [m.height, position && number(position.alt_m, "m")],
    [m.speed, position && number(position.speed_mps, "m/s")],
    [m.heading, position && number(position.heading_deg, "°", 0)],
    [m.battery, typeof safety.battery_pct === "number" ? `${safety.battery_pct} %` : null],
    [m.gps, safety.gps_ok === undefined ? null : safety.gps_ok ? m.good : m.bad, safety.gps_ok ? "" : "bad"],
    [m.link, safety.link_ok === undefined ? null : safety.link_ok ? m.good : m.bad, safety.link_ok ? "" : "bad"],
    [m.pilot, safety.pilot_override === true ? m.yes : safety.pilot_override, "warn"],
    [m.goal, goal],
    [m.ceiling, limits.max_alt_m && number(limits.max_alt_m, "m", 0)],
  ].filter(([, value]) => value !== null && value !== undefined && value !== false);
  return html`<section class="card machine-card">
    <h2>${state.vehicle || tool.toolbox_id} ${result ? html`<span class=${`badge ${result.simulated ? "" : "motion"}`}>${result.simulated ? T.health.simulated : T.health.hardware}</span>` : null}</h2>
    ${error ? html`<p class="trouble" role="status">${error}</p>` : null}
    ${result || error ? null : html`<p class="loading">${T.loading}</p>`}
    <div class="sides">
      ${position
        ? html`<figure>
            <${Plot}
              title=${state.vehicle || tool.toolbox_id}
              place=${[position.east_m, position.north_m]}
              heading=${position.heading_deg}
              track=${track}
              home=${home && [home.east_m, home.north_m]}
              fence=${drawn}
              across=${m.east}
              up=${m.north}
            />
            <figcaption>${m.where(position.north_m.toFixed(1), position.east_m.toFixed(1))}</figcaption>
          </figure>`
        : result
          ? html`<p class="empty">${m.nowhere}</p>`
          : null}
      <dl class="readings">${rows.map(([name, value, look]) => html`<div class=${look}><dt>${name}</dt><dd>${String(value)}</dd></div>`)}</dl>
    </div>
  </section>`;
}

// The newest picture of a camera of this machine or of a running pipeline, when it is asked for.
function Pictures({ app, snapshot, devices, instances }) {
  const [sources, setSources] = useState(null);
  const [shown, show] = useState(null);
  const [trouble, setTrouble] = useState("");
  const ask = (tool, args) => post("run", { toolbox_id: tool.toolbox_id, name: tool.name, args, call_id: lookId() });
  const find = async () => {
    const found = [];
    if (instances) for (const one of (await ask(instances, {})).result?.instances || []) found.push({ title: one.name || one.instance_id || one.id, args: { instance_id: one.instance_id || one.id } });
    if (devices) for (const one of (await ask(devices, {})).result?.devices || []) if (one.device || one.path) found.push({ title: `${one.name || ""} ${one.device || one.path}`.trim(), args: { device: one.device || one.path } });
    setSources(found);
  };
  useEffect(() => {
    find().catch((error) => setTrouble(error.message));
  }, [app.generation]);
  const take = async (source) => {
    setTrouble("");
    show({ title: source.title });
    try {
      const request = { toolbox_id: snapshot.toolbox_id, name: snapshot.name, args: { ...source.args, inline: true } };
      let answer = await post("run", request);
      // The button says what it does: to press it is to confirm it.
      if (answer.confirm) answer = await post("run", { ...request, confirm: answer.confirm.token });
      if (answer.error) throw new Error(answer.error);
      show({ title: source.title, content: answer.content, at: new Date() });
    } catch (error) {
      show(null);
      setTrouble(error.message);
    }
  };
  const may = app.role === "operator";
  return html`<section class="card machine-card">
    <h2>${T.machines.pictures}</h2>
    <p class="help">${T.machines.onDemand}</p>
    ${may ? null : html`<p class="help">${T.machines.operator}</p>`}
    <div class="actions">
      ${(sources || []).map((source) => html`<button type="button" disabled=${!may} onClick=${() => take(source)}>${T.machines.take(source.title)}</button>`)}
      <button type="button" onClick=${() => find().catch((error) => setTrouble(error.message))}>${T.machines.lookAgain}</button>
    </div>
    ${sources && sources.length === 0 ? html`<p class="empty">${T.machines.noCamera}</p>` : null}
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    ${shown && !shown.at ? html`<p class="loading" role="status">${T.machines.taking}</p>` : null}
    ${shown?.content ? html`<figure><${Content} content=${shown.content} title=${shown.title} /><figcaption>${shown.title} · ${shown.at.toLocaleTimeString("sv-SE")}</figcaption></figure>` : null}
  </section>`;
}

// The machines that a list of tools tells of.
export function machinesOf(tools) {
  const named = (name) => tools.filter((tool) => tool.name === name);
  const units = (tool) => tool.argument_schema?.properties?.robot?.enum || [undefined];
  return {
    robots: named("motor_status").flatMap((tool) => units(tool).map((unit) => ({ tool, unit }))),
    vehicles: named("vehicle_state"),
    cameras: named("take_snapshot").map((snapshot) => {
      const beside = (name) => tools.find((tool) => tool.name === name && tool.toolbox_id === snapshot.toolbox_id);
      return { snapshot, devices: beside("list_video_devices"), instances: beside("get_running_instances") };
    }),
  };
}

export function Machines({ app }) {
  const [tools, setTools] = useState(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    get("tools").then(
      (answer) => setTools(answer.tools),
      (error) => setTrouble(error.message),
    );
  }, [app.generation]);
  if (!tools) return trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : html`<p class="loading">${T.loading}</p>`;
  const { robots, vehicles, cameras } = machinesOf(tools);
  const none = robots.length + vehicles.length + cameras.length === 0;
  return html`
    ${none ? html`<p class="empty">${T.machines.none}</p>` : null}
    ${robots.map(({ tool, unit }) => html`<${Robot} key=${`${tool.toolbox_id}/${unit}`} app=${app} tool=${tool} unit=${unit} />`)}
    ${vehicles.map((tool) => html`<${Vehicle} key=${tool.toolbox_id} app=${app} tool=${tool} />`)}
    ${cameras.map((camera) => html`<${Pictures} key=${camera.snapshot.toolbox_id} app=${app} ...${camera} />`)}
  `;
}
