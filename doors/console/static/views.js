// The views of the page, in the order of its navigation.
import { html, useEffect, useMemo, useRef, useState } from "/vendor/htm-preact.js";
import { T } from "/texts.js";
import { clock, get, millis, post } from "/service.js";
import { Plan, Timeline, actionsOf } from "/graph.js";
import { Content } from "/content.js";
import { Form, argumentsOf, fieldsOf, textOf } from "/form.js";

const Badge = ({ kind, children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;
const Empty = ({ children }) => html`<p class="empty">${children}</p>`;
const Loading = () => html`<p class="loading">${T.loading}</p>`;
const Trouble = ({ children }) => (children ? html`<p class="trouble" role="alert">${children}</p>` : null);
const endOf = (call) => call.outcome || (call.ok === true ? T.outcome.completed : call.ok === false ? T.outcome.failed : call.ended_us ? T.outcome.none : T.outcome.running);

// Loads what a view shows; `again` loads it once more.
function useLoaded(load, keys) {
  const [state, set] = useState({ loading: true });
  useEffect(() => {
    let gone = false;
    load().then(
      (value) => gone || set({ value }),
      (error) => gone || set({ error: error.message }),
    );
    return () => (gone = true);
  }, keys);
  return state;
}

export function Health({ app }) {
  const status = app.status;
  if (!status) return html`<${Trouble}>${T.connection.service}<//>`;
  const t = T.health;
  const seconds = Math.round(status.service.uptime_ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return html`
    ${status.toolboxes.length ? null : html`<${Empty}>${t.none}<//>`}
    <ul class="cards">
      ${status.toolboxes.map(
        (toolbox) => html`<li class=${`card ${toolbox.latched ? "latched" : ""}`}>
          <h2>${toolbox.toolbox_id} <${Badge} kind=${toolbox.latched ? "bad" : toolbox.state}>${toolbox.latched ? t.latched : toolbox.state}<//></h2>
          <p>${toolbox.description || ""}</p>
          <${Trouble}>${toolbox.stop_reason || toolbox.reason || toolbox.last_death}<//>
          <dl>
            <dt>${t.backend}</dt>
            <dd><${Badge} kind=${toolbox.simulated === true ? "" : "motion"}>${toolbox.simulated === true ? t.simulated : toolbox.simulated === false ? t.hardware : t.unsaid}<//></dd>
            <dt>${t.tools}</dt>
            <dd><a href=${`#/tools?toolbox=${encodeURIComponent(toolbox.toolbox_id)}`}>${toolbox.tools}</a></dd>
            ${toolbox.host ? html`<dt>${t.host}</dt><dd>${toolbox.host}</dd>` : null}
            <dt>${t.copy}</dt>
            <dd>${t.running(toolbox.isolation, toolbox.generation, toolbox.restarts)}</dd>
          </dl>
        </li>`,
      )}
    </ul>
    ${(status.off || []).length
      ? html`<h2>${t.off}</h2>
          <ul>
            ${status.off.map((off) => html`<li><b>${off.toolbox_id}</b> ${off.reason} <code>${off.enable || ""}</code></li>`)}
          </ul>`
      : null}
    ${status.failed.length
      ? html`<h2>${t.failed}</h2>
          <ul>
            ${status.failed.map((failed) => html`<li><b>${failed.toolbox_id || failed.path}</b> ${failed.reason}</li>`)}
          </ul>`
      : null}
    ${(status.warnings || []).length
      ? html`<h2>${t.warnings}</h2>
          <ul>
            ${status.warnings.map((warning) => html`<li>${warning}</li>`)}
          </ul>`
      : null}
    <h2>${t.service}</h2>
    <dl class="card wide">
      <dt>${t.version}</dt>
      <dd>${status.service.version}</dd>
      <dt>${t.uptime}</dt>
      <dd>${hours ? `${hours} h ` : ""}${hours || minutes ? `${minutes} min ` : ""}${seconds % 60} s</dd>
      <dt>${t.bus}</dt>
      <dd>${status.bus.url} <${Badge} kind=${status.bus.connected ? "ready" : "bad"}>${status.bus.connected ? t.connected : t.disconnected}<//></dd>
      <dt>${t.facts}</dt>
      <dd>${status.facts.trouble || status.facts.path || ""} ${status.facts.lost ? t.lost(status.facts.lost) : ""}</dd>
      ${(status.doors || []).map((door) => html`<dt>${t.door(door.name)}</dt><dd>${door.pid ? t.process(door.pid) : door.reason || ""}</dd>`)}
      ${Object.entries(status.counters).map(([name, value]) => html`<dt>${t.counter(name)}</dt><dd>${value}</dd>`)}
    </dl>
  `;
}

// How many tools are listed at a time: thousands would hold up the page, and its stop.
const MOST_TOOLS = 500;

export function Tools({ app, query }) {
  const loaded = useLoaded(() => get("tools"), [app.generation]);
  const [search, setSearch] = useState("");
  const tools = loaded.value?.tools || [];
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (tool) => {
    const text = `${tool.name} ${tool.toolbox_id} ${tool.description} ${tool.meta?.category || ""}`.toLowerCase();
    return (!query.toolbox || tool.toolbox_id === query.toolbox) && words.every((word) => text.includes(word));
  };
  const found = tools.filter(fits);
  const shown = found.slice(0, MOST_TOOLS);
  const groups = [...new Set(shown.map((tool) => tool.toolbox_id))];
  return html`
    <div class="filters">
      <label class="search">${T.tools.search} <input type="search" value=${search} onInput=${(event) => setSearch(event.target.value)} /></label>
      <span role="status">${loaded.value ? T.tools.count(found.length) : ""}</span>
    </div>
    ${query.toolbox ? html`<p class="help">${T.tools.only(query.toolbox)} <a href="#/tools">${T.tools.back}</a></p>` : null}
    <${Trouble}>${loaded.error}<//>
    ${loaded.loading ? html`<${Loading} />` : null}
    ${loaded.value && shown.length === 0 ? html`<${Empty}>${T.tools.none}<//>` : null}
    ${groups.map(
      (group) => html`<section>
        <h2>${group}</h2>
        <ul class="list">
          ${shown
            .filter((tool) => tool.toolbox_id === group)
            .map(
              (tool) => html`<li>
                <a href=${`#/tools/${encodeURIComponent(tool.toolbox_id)}/${encodeURIComponent(tool.name)}`}>${tool.name}</a>
                <${Badge} kind=${tool.meta?.effect}>${tool.meta?.effect}<//>
                <span class="about">${tool.description}</span>
              </li>`,
            )}
        </ul>
      </section>`,
    )}
    ${found.length > shown.length ? html`<${Empty}>${T.tools.more(found.length - shown.length)}<//>` : null}
  `;
}

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function copies(tool, args) {
  const json = JSON.stringify(args);
  const message = { type: "ovos.tools.invoke", data: { name: tool.name, toolbox_id: tool.toolbox_id, args }, context: {} };
  return [
    [T.tools.cli, `ovos-tools invoke ${tool.toolbox_id}__${tool.name} ${quoted(json)}`],
    [
      T.tools.python,
      `from ovos_bus_client import Message, MessageBusClient\n\nbus = MessageBusClient()\nbus.run_in_thread()\nbus.connected_event.wait()\nmessage = Message("ovos.tools.invoke", json.loads(${JSON.stringify(JSON.stringify(message.data))}))\nprint(bus.wait_for_response(message, "ovos.tools.invoke.response", timeout=60).data)\n`.replace(
        "from ovos",
        "import json\n\nfrom ovos",
      ),
    ],
    [T.tools.message, JSON.stringify(message, null, 2)],
  ];
}

export function Tool({ app, toolbox, name }) {
  const loaded = useLoaded(() => get("tools"), [app.generation]);
  const tool = (loaded.value?.tools || []).find((tool) => tool.name === name && tool.toolbox_id === toolbox);
  if (loaded.loading) return html`<${Loading} />`;
  if (!tool) {
    return html`<p><a href="#/tools">← ${T.tools.back}</a></p>
      <${Trouble}>${loaded.error || T.tools.gone}<//>`;
  }
  return html`<${ToolForm} app=${app} tool=${tool} key=${`${toolbox}/${name}`} />`;
}

function ToolForm({ app, tool }) {
  const fields = useMemo(() => fieldsOf(tool.argument_schema), [tool]);
  // What an earlier call was asked with: `{args, plan}`.
  const [again] = useState(() => {
    const again = app.again.current;
    app.again.current = null;
    return again;
  });
  const [texts, setTexts] = useState(() => (again ? Object.fromEntries(fields.map((field) => [field.name, textOf(field, again.args[field.name])])) : {}));
  const [plan, setPlan] = useState(null);
  const [answer, setAnswer] = useState(null);
  const [running, setRunning] = useState(null);
  const [trouble, setTrouble] = useState("");
  const may = app.role === "operator" || tool.meta?.effect === "read";
  const doing = async (what) => {
    setTrouble("");
    try {
      await what();
    } catch (error) {
      setTrouble(error.message);
    }
  };
  const wanted = () => ({ toolbox_id: tool.toolbox_id, name: tool.name, args: argumentsOf(fields, texts) });
  const showPlan = () =>
    doing(async () => {
      setPlan(null);
      const planned = await post("plan", wanted());
      if (planned.error) throw new Error(planned.error);
      setPlan(planned);
    });
  const run = (confirm) =>
    doing(async () => {
      const call_id = `console-${crypto.randomUUID()}`;
      const request = { ...wanted(), call_id, confirm };
      setAnswer(null);
      setRunning(call_id);
      try {
        setAnswer(await post("run", request));
      } finally {
        setRunning(null);
      }
    });
  const cancel = () => doing(() => post("cancel", { call_id: running }));
  useEffect(() => {
    if (again?.plan) showPlan();
  }, []);
  const below = useRef(null);
  useEffect(() => below.current?.scrollIntoView({ block: "nearest" }), [plan, answer]);
  let args = null;
  try {
    args = argumentsOf(fields, texts);
  } catch {
    // What is no JSON yet cannot be copied.
  }
  return html`
    <p><a href="#/tools">← ${T.tools.back}</a></p>
    <h2>${tool.name} <small>${tool.toolbox_id}</small> <${Badge} kind=${tool.meta?.effect}>${tool.meta?.effect}<//></h2>
    <p class="about">${tool.description}</p>
    <form
      onSubmit=${(event) => {
        event.preventDefault();
        showPlan();
      }}
    >
      <h3>${T.tools.arguments}</h3>
      <${Form} fields=${fields} texts=${texts} onChange=${setTexts} />
      <div class="actions">
        <button type="submit">${T.tools.plan}</button>
        <button type="button" class="main" disabled=${!may || running} onClick=${() => run()}>${running ? T.tools.running : T.tools.run}</button>
        ${running ? html`<button type="button" onClick=${cancel}>${T.tools.cancel}</button>` : null}
      </div>
    </form>
    ${may ? null : html`<p class="help">${T.tools.readOnly}</p>`}
    ${again && !answer && !running ? html`<p class="help" role="status">${T.tools.filled}</p>` : null}
    <${Trouble}>${trouble}<//>
    ${plan
      ? html`<section aria-label=${T.plan.title}>
          <h3>${T.plan.title} <small>${T.plan.bound(plan.bound_ms / 1000)}</small></h3>
          <${Plan} waves=${plan.waves} />
          <p class="help">${T.plan.nothing}</p>
        </section>`
      : null}
    ${answer
      ? html`<section role="status">
          ${answer.confirm
            ? html`<div class="confirm">
                <p>${T.tools.confirm} <b>${answer.confirm.text}</b></p>
                <button class="main" disabled=${!may} onClick=${() => run(answer.confirm.token)}>${T.tools.confirmed}</button>
              </div>`
            : html`<h3>${answer.error ? T.tools.error : T.tools.result}</h3>
                <${Content} content=${answer.content} />
                <pre class=${answer.error ? "bad" : ""} tabindex="0">${answer.error || JSON.stringify(answer.result, null, 2)}</pre>`}
        </section>`
      : null}
    <div ref=${below}></div>
    ${args ? html`<${Copies} tool=${tool} args=${args} />` : null}
  `;
}

// A call as text for other programs.
function Copies({ tool, args }) {
  const [copied, setCopied] = useState("");
  const copy = (title, text) => navigator.clipboard.writeText(text).then(() => setCopied(title));
  return html`<details>
    <summary>${T.tools.copy}</summary>
    ${copies(tool, args).map(
      ([title, text]) => html`<h3>${title} <button type="button" onClick=${() => copy(title, text)}>${copied === title ? T.tools.copied : T.tools.copyIt(title)}</button></h3>
        <pre tabindex="0">${text}</pre>`,
    )}
  </details>`;
}

function LiveCall({ app, call, now_us }) {
  const planned = call.facts.find((fact) => fact.fact === "planned");
  const waiting = call.facts.findLast((fact) => fact.fact === "waiting");
  const begun = actionsOf(call).length > 0;
  // A call of one action is its own bar.
  const several = actionsOf(call).length > 1 || (planned?.data.waves || []).flat().length > 1;
  return html`<li class=${`card call ${call.ended_us ? "" : "running"} ${several ? "several" : ""}`}>
    <div class="line">
      <h3>${call.tool} <small>${call.toolbox_id}</small> <${Badge} kind=${endOf(call)}>${endOf(call)}<//></h3>
      <span class="asked">${call.principal ? `${T.live.by} ${call.principal}` : ""}</span>
      <span class="took">${millis((call.ended_us || Math.max(now_us, call.started_us)) - call.started_us)}</span>
      ${call.ended_us || app.role !== "operator" ? null : html`<button type="button" aria-label=${T.live.cancelOne(call.tool)} onClick=${() => post("cancel", { call_id: call.call_id }).catch(app.fail)}>${T.live.cancel}</button>`}
    </div>
    ${call.error ? html`<p class="help">${call.error}</p>` : null}
    ${!begun && !call.ended_us && waiting ? html`<p>${T.live.waits(waiting.data.ahead)}</p>` : null}
    ${several ? html`<${Timeline} call=${call} now_us=${now_us} />` : null}
  </li>`;
}

export function Live({ app }) {
  const calls = [...app.calls.values()].sort((a, b) => b.started_us - a.started_us);
  const running = calls.filter((call) => !call.ended_us);
  const ended = calls.filter((call) => call.ended_us).slice(0, 10);
  return html`
    <h2>${T.live.running}</h2>
    ${running.length ? null : html`<${Empty}>${T.live.none}<//>`}
    <ul class="calls">
      ${running.map((call) => html`<${LiveCall} key=${call.number} app=${app} call=${call} now_us=${app.now_us} />`)}
    </ul>
    ${ended.length ? html`<h2>${T.live.ended}</h2>` : null}
    <ul class="calls">
      ${ended.map((call) => html`<${LiveCall} key=${call.number} app=${app} call=${call} now_us=${app.now_us} />`)}
    </ul>
  `;
}

export function Approvals({ app }) {
  const decide = (what, id) => post(what, { id }).then(app.refresh, app.fail);
  const may = app.role === "operator";
  const waves = (plan) => (Array.isArray(plan) ? plan.map((wave) => wave.map((action) => (typeof action === "string" ? { id: action, name: action } : action))) : []);
  return html`
    ${app.waiting.length ? null : html`<${Empty}>${app.waiting_error ? T.approvals.unknown(app.waiting_error) : T.approvals.none}<//>`}
    ${may || app.waiting.length === 0 ? null : html`<p class="help">${T.approvals.operator}</p>`}
    <ul class="calls">
      ${app.waiting.map(
        (call) => html`<li class="card">
          <h2>${call.tool} <small>${call.toolbox_id}</small></h2>
          <p><b>${call.text}</b></p>
          <p class="help">${T.live.by} ${call.principal} · <b>${call.approved ? T.approvals.approved : call.refused ? T.approvals.refused : T.approvals.expires(Math.round(call.expires_ms / 1000))}</b></p>
          ${waves(call.plan).length ? html`<h3>${T.approvals.plan}</h3><${Plan} waves=${waves(call.plan)} />` : null}
          <div class="actions">
            <button class="main" disabled=${!may || call.approved} onClick=${() => decide("approve", call.id)}>${T.approvals.approve}</button>
            <button disabled=${!may || call.refused} onClick=${() => decide("deny", call.id)}>${T.approvals.deny}</button>
          </div>
        </li>`,
      )}
    </ul>
  `;
}

const SINCE = { [T.history.hour]: 3600, [T.history.day]: 86_400, [T.history.week]: 7 * 86_400, [T.history.ever]: 0 };

// How many calls are shown, and how many more at a time, up to what the console gives.
const PAGE = 100;
const MOST_CALLS = 1000;

export function History({ app }) {
  const [filter, setFilter] = useState({ since: T.history.day, tool: "", toolbox: "", session: "", failed: false });
  const ago = SINCE[filter.since];
  const [limit, setLimit] = useState(PAGE);
  const query = () => ({ ...filter, limit, since: undefined, since_us: ago ? (Math.floor(Date.now() / 1000) - ago) * 1_000_000 : undefined });
  const loaded = useLoaded(() => get("calls", query()), [filter, limit, app.answered]);
  const calls = loaded.value?.calls || [];
  const field = (key) => html`<label>${T.history[key]} <input value=${filter[key]} onInput=${(event) => setFilter({ ...filter, [key]: event.target.value })} /></label>`;
  return html`
    <div class="filters">
      <label
        >${T.history.since}
        <select value=${filter.since} onChange=${(event) => setFilter({ ...filter, since: event.target.value })}>
          ${Object.keys(SINCE).map((title) => html`<option value=${title} selected=${title === filter.since}>${title}</option>`)}
        </select></label
      >
      ${field("tool")} ${field("toolbox")} ${field("session")}
      <label class="check"><input type="checkbox" checked=${filter.failed} onChange=${(event) => setFilter({ ...filter, failed: event.target.checked })} /> ${T.history.failed}</label>
    </div>
    <${Trouble}>${loaded.error}<//>
    ${loaded.loading ? html`<${Loading} />` : null}
    ${loaded.value && calls.length === 0 ? html`<${Empty}>${T.history.none}<//>` : null}
    ${calls.length
      ? html`<div class="scroll" tabindex="0" role="group" aria-label=${T.views.history}>
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">${T.history.started}</th>
                <th scope="col">${T.history.toolbox}</th>
                <th scope="col">${T.history.tool}</th>
                <th scope="col">${T.history.end}</th>
                <th scope="col">${T.history.took}</th>
              </tr>
            </thead>
            <tbody>
              ${calls.map(
                (call) => html`<tr>
                  <td>${clock(call.started_us)}</td>
                  <td>${call.toolbox_id}</td>
                  <td><a href=${`#/history/${call.run}/${call.call}`}>${call.tool}</a></td>
                  <td><${Badge} kind=${endOf(call)}>${endOf(call)}<//> ${call.error || ""}</td>
                  <td>${call.ended_us ? millis(call.ended_us - call.started_us) : ""}</td>
                </tr>`,
              )}
            </tbody>
          </table>
        </div>`
      : null}
    ${calls.length >= limit && limit < MOST_CALLS ? html`<p><button type="button" onClick=${() => setLimit(limit + PAGE)}>${T.history.more}</button></p>` : null}
  `;
}

export function Past({ app, run, call }) {
  const loaded = useLoaded(() => get("call", { run, call }), [run, call, app.answered]);
  const [shown, show] = useState("timeline");
  const past = loaded.value;
  if (!past) return loaded.loading ? html`<${Loading} />` : html`<${Trouble}>${loaded.error}<//>`;
  const args = past.request?.args || past.request?.kwargs || {};
  const again = (plan) => {
    app.again.current = { args, plan };
    location.hash = `#/tools/${encodeURIComponent(past.toolbox_id)}/${encodeURIComponent(past.tool)}`;
  };
  return html`
    <p><a href="#/history">← ${T.history.back}</a></p>
    <h2>${past.tool} <small>${past.toolbox_id}</small> <${Badge} kind=${endOf(past)}>${endOf(past)}<//></h2>
    <p class="help">${clock(past.started_us)} · ${T.history.call(past.call_id)} ${past.principal ? `· ${T.live.by} ${past.principal}` : ""}</p>
    <${Trouble}>${past.error}<//>
    <div class="actions">
      <button type="button" title=${T.history.planHelp} onClick=${() => again(true)}>${T.history.planAgain}</button>
      <button type="button" title=${T.history.runHelp} onClick=${() => again(false)}>${T.history.runAgain}</button>
    </div>
    <div class="tabs" role="tablist">
      ${["timeline", "table", "json"].map(
        (name) => html`<button role="tab" aria-selected=${shown === name} aria-controls="past" onClick=${() => show(name)}>${T.history[name]}</button>`,
      )}
    </div>
    <div id="past" role="tabpanel">
      ${shown === "timeline"
        ? html`<${Timeline} call=${past} now_us=${0} />
            <h3>${T.history.request}</h3>
            <pre tabindex="0">${JSON.stringify(past.request, null, 2)}</pre>
            <h3>${T.tools.result}</h3>
            <pre tabindex="0">${JSON.stringify(past.result, null, 2)}</pre>`
        : shown === "json"
          ? html`<pre tabindex="0">${JSON.stringify(past, null, 2)}</pre>`
          : html`<div class="scroll" tabindex="0" role="group" aria-label=${T.history.facts}>
              <table>
                <thead>
                  <tr>
                    <th scope="col">${T.history.at}</th>
                    <th scope="col">${T.history.fact}</th>
                    <th scope="col">${T.history.detail}</th>
                  </tr>
                </thead>
                <tbody>
                  ${past.facts.map((fact) => {
                    const { call: _, ...rest } = fact.data;
                    return html`<tr>
                      <td>${millis(fact.time_us - past.started_us)}</td>
                      <td>${fact.fact}</td>
                      <td><code>${JSON.stringify(rest)}</code></td>
                    </tr>`;
                  })}
                </tbody>
              </table>
            </div>`}
    </div>
    <${Copies} tool=${{ name: past.tool, toolbox_id: past.toolbox_id }} args=${args} />
  `;
}
