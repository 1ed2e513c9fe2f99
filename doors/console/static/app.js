// The page: who is signed in, what is running, which view is shown, and the stop.
import { html, render, useCallback, useEffect, useRef, useState } from "/vendor/htm-preact.js";
import { T } from "/texts.js";
import { follow, get, post, stop, takeCall, takeFact } from "/service.js";
import { Machines } from "/machines.js";
import { Approvals, Health, History, Live, Past, Tool, Tools } from "/views.js";

const POLL_MS = 2000;
const HOLD_MS = 2000;
const TWICE_MS = 800;
// How many calls that ended stay in the memory of the page.
const ENDED = 50;

const routeOf = () => {
  const [path, search = ""] = location.hash.replace(/^#\//, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(search)) };
};

function SignIn({ onDone }) {
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState("");
  const send = async (event) => {
    event.preventDefault();
    try {
      await post("session", { token: token.trim() });
      onDone();
    } catch (error) {
      setTrouble(error.message);
    }
  };
  return html`<main class="sign-in">
    <h1>${T.title}</h1>
    <form onSubmit=${send}>
      <h2>${T.signIn.title}</h2>
      <p>${T.signIn.why}</p>
      <label>${T.signIn.token} <input type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} /></label>
      <button class="main">${T.signIn.send}</button>
      ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    </form>
  </main>`;
}

// Lifts a stop after it was held for two seconds, by pointer or key.
function Hold({ title, disabled, onHeld }) {
  const timer = useRef(null);
  const [holding, setHolding] = useState(false);
  const begin = () => {
    if (timer.current || disabled) return;
    setHolding(true);
    timer.current = setTimeout(() => {
      end();
      onHeld();
    }, HOLD_MS);
  };
  const end = () => {
    clearTimeout(timer.current);
    timer.current = null;
    setHolding(false);
  };
  const isKey = (event) => event.key === "Enter" || event.key === " ";
  return html`<button
    class=${`hold ${holding ? "holding" : ""}`}
    disabled=${disabled}
    onPointerDown=${begin}
    onPointerUp=${end}
    onPointerLeave=${end}
    onKeyDown=${(event) => isKey(event) && begin()}
    onKeyUp=${end}
    onBlur=${end}
    onContextMenu=${(event) => event.preventDefault()}
  >
    ${holding ? T.stop.holding : title}
  </button>`;
}

function Stopped({ app, result, onClose }) {
  const latched = (app.status?.toolboxes || []).filter((toolbox) => toolbox.latched);
  const all = app.status?.all_latched;
  if (!result && latched.length === 0 && !all) return null;
  const lift = (toolbox_id, stop_id) => post("resume", { toolbox_id, stop_id }).then(app.refresh, app.fail);
  return html`<section class=${`held ${result && !result.pending && !result.confirmed ? "unconfirmed" : ""}`} aria-label=${T.stop.held}>
    <div role="alert">
      ${result
        ? html`<p class="large">${result.pending ? T.stop.sending : result.confirmed ? T.stop.done : T.stop.unconfirmed} ${result.error ? html`<small>${result.error}</small>` : null}</p>
            <ul>
              ${result.toolboxes.map((toolbox) => html`<li><b>${toolbox.toolbox_id}</b> ${toolbox.ok ? T.stop.reached(result.ms) : T.stop.unreached(toolbox.error || "")}</li>`)}
            </ul>`
        : null}
    </div>
    <ul class="lifts">
      ${latched.map(
        (toolbox) => html`<li>
          <span><b>${T.stop.held}: ${toolbox.toolbox_id}</b> <small>${toolbox.stop_reason || ""} · ${toolbox.stop_id}</small></span>
          ${toolbox.stop_id ? html`<${Hold} title=${T.stop.hold(toolbox.toolbox_id)} disabled=${app.role !== "operator"} onHeld=${() => lift(toolbox.toolbox_id, toolbox.stop_id)} />` : null}
        </li>`,
      )}
    </ul>
    ${all && latched.length === 0 ? html`<p><b>${T.stop.held}</b> <${Hold} title=${T.stop.hold("all")} disabled=${app.role !== "operator"} onHeld=${() => lift("all", all.stop_id)} /></p>` : null}
    ${latched.length || all ? html`<p><small>${app.role === "operator" ? T.stop.how : T.stop.operator}</small></p>` : null}
    ${result && !result.pending ? html`<button onClick=${onClose}>${T.stop.close}</button>` : null}
  </section>`;
}

function App() {
  const [session, setSession] = useState("unknown");
  const [state, setState] = useState({ status: null, waiting: [], waiting_error: null, role: "viewer", history: null });
  const [route, setRoute] = useState(routeOf);
  const [live, setLive] = useState(true);
  const [trouble, setTrouble] = useState("");
  const [stopped, setStopped] = useState(null);
  const [now_us, setNow] = useState(Date.now() * 1000);
  const [answered, setAnswered] = useState(0);
  const calls = useRef(new Map());
  const again = useRef(null);

  const refresh = useCallback(async () => {
    try {
      setState(await get("state"));
      setSession("in");
    } catch (error) {
      if (error.status === 401) setSession("out");
      else setState((before) => ({ ...before, status: null }));
    }
  }, []);
  const fail = useCallback((error) => setTrouble(error.message), []);
  const halt = useCallback(async () => {
    setStopped({ pending: true, toolboxes: [] });
    setStopped(await stop());
    refresh();
  }, []);

  useEffect(() => {
    const token = new URLSearchParams(location.hash.replace(/^#/, "")).get("token");
    if (!token) {
      refresh();
    } else {
      // The token does not stay in the address.
      history.replaceState(null, "", "/#/");
      setRoute(routeOf());
      post("session", { token }).catch(fail).then(refresh);
    }
    const moved = () => {
      setTrouble("");
      setRoute(routeOf());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);

  useEffect(() => {
    let before = 0;
    const pressed = (event) => {
      if (event.key !== "Escape" || event.repeat) return;
      if (event.timeStamp - before < TWICE_MS) halt();
      before = event.timeStamp;
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  useEffect(() => {
    if (session !== "in") return;
    let soon = null;
    const later = () => {
      soon ??= setTimeout(() => {
        soon = null;
        const ended = [...calls.current.entries()].filter(([, call]) => call.ended_us);
        for (const [number] of ended.slice(0, Math.max(0, ended.length - ENDED))) calls.current.delete(number);
        setAnswered((count) => count + 1);
        refresh();
      }, 200);
    };
    // What runs already, from the history.
    const load = async () => {
      try {
        const before = [...calls.current.values()];
        const { calls: whole } = await get("under-way");
        const running = new Set((await get("state")).status?.calls.map((call) => call.call_id));
        for (const call of before) if (!call.ended_us && !running.has(call.call_id)) calls.current.delete(call.number);
        for (const call of whole) if (running.has(call.call_id)) takeCall(calls.current, call);
      } catch {
        // Without a history the calls are shown from their next fact on.
      }
      later();
    };
    const end = follow({
      live: setLive,
      reset: load,
      fact: (time_us, line) => {
        takeFact(calls.current, time_us, line);
        later();
      },
    });
    const poll = setInterval(() => document.hidden || refresh(), POLL_MS);
    return () => {
      end();
      clearInterval(poll);
      clearTimeout(soon);
    };
  }, [session]);

  // What runs grows while it is looked at.
  useEffect(() => {
    if (route.parts[0] !== "live") return;
    const tick = setInterval(() => setNow(Date.now() * 1000), 200);
    return () => clearInterval(tick);
  }, [route]);

  if (session === "unknown") return html`<p class="loading">${T.loading}</p>`;
  if (session === "out") return html`<${SignIn} onDone=${refresh} />`;

  const status = state.status;
  const generation = status ? status.toolboxes.map((toolbox) => `${toolbox.toolbox_id}/${toolbox.generation}/${toolbox.state}`).join() : "";
  const app = { ...state, calls: calls.current, again, now_us, answered, generation, refresh, fail };
  const view = route.parts[0] || "health";
  const views = { health: Health, machines: Machines, tools: route.parts[2] ? Tool : Tools, live: Live, approvals: Approvals, history: route.parts[2] ? Past : History };
  const View = views[view] || Health;
  const counts = { approvals: state.waiting.filter((call) => !call.refused && !call.approved).length, live: status?.calls.length || 0 };
  return html`
    <a class="skip" href="#content" onClick=${(event) => (event.preventDefault(), document.getElementById("content").focus())}>${T.skip}</a>
    <header>
      <div class="bar-top">
        <h1>${T.title}</h1>
      <nav aria-label=${T.title}>
        ${Object.entries(T.views).map(
          ([name, title]) => html`<a href=${`#/${name}`} aria-current=${view === name ? "page" : undefined}>${title}${counts[name] ? html` <span class="count">${counts[name]}</span>` : null}</a>`,
        )}
      </nav>
      <span class="role">${T.role[state.role]}</span>
      <button class="stop" title=${T.stop.help} onClick=${halt}>${T.stop.button}</button>
     </div>
     <${Stopped} app=${app} result=${stopped} onClose=${() => setStopped(null)} />
     ${live ? null : html`<p class="trouble" role="status">${T.connection.lost}</p>`}
     ${status || view === "health" ? null : html`<p class="trouble" role="status">${T.connection.service}</p>`}
     ${state.history ? html`<p class="trouble" role="status">${T.connection.history(state.history)}</p>` : null}
     ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    </header>
    <main id="content" tabindex="-1">
      <h2 class="view">${T.views[view] || T.views.health}</h2>
      <${View} app=${app} query=${route.query} toolbox=${route.parts[1]} name=${route.parts[2]} run=${route.parts[1]} call=${route.parts[2]} />
    </main>
  `;
}

render(html`<${App} />`, document.getElementById("app"));
