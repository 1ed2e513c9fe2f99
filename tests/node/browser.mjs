// Pages in a real browser that use the door over HTTP: browser.mjs NODE_MODULES BROWSER URL TOKEN PROFILES. Prints what each of them came to,
// one line of JSON a page. A page of http://localhost and one of http://127.0.0.1 are of different origins.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";

const [BROWSER, URL_OF_DOOR, TOKEN, PROFILES] = process.argv.slice(3);
const DEADLINE_MS = 60_000;
const END_MS = 5_000;

// What runs in the page, as text.
const page = async (url, token) => {
  const steps = {};
  const step = async (name, doing) => {
    try {
      steps[name] = await doing();
    } catch (error) {
      steps[name] = `${error.name}: ${error.message}`;
    }
  };
  const answer = (text) => {
    const lines = text.split("\n").map((line) => line.replace(/^data: /, ""));
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)).find((said) => said.id);
  };
  const send = (headers, message, method = "POST") =>
    fetch(url, {
      method,
      headers: {
        Accept: "application/json, text/event-stream",
        "Content-Type": "application/json",
        ...(token && { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(message && { body: JSON.stringify({ jsonrpc: "2.0", ...message }) }),
    });
  const tools = async (response) => answer(await response.text()).result.tools.map((tool) => tool.name);
  const sum = async (response) => answer(await response.text()).result.structuredContent.result;

  const client = { name: "page", version: "1" };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": client,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const modern = (method, params) => {
    const headers = { "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method };
    if (params.name) headers["Mcp-Name"] = params.name;
    return send(headers, { id: 1, method, params: { ...params, _meta } });
  };
  const add = { name: "add", arguments: { a: 20, b: 22 } };
  await step("modern lists", async () => tools(await modern("tools/list", {})));
  await step("modern calls", async () => sum(await modern("tools/call", add)));

  let session = {};
  await step("legacy opens", async () => {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: client };
    const response = await send({}, { id: 1, method: "initialize", params });
    await response.text();
    session = { "Mcp-Session-Id": response.headers.get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-11-25" };
    return (await send(session, { method: "notifications/initialized" })).status;
  });
  await step("legacy lists", async () => tools(await send(session, { id: 2, method: "tools/list" })));
  await step("legacy calls", async () => sum(await send(session, { id: 3, method: "tools/call", params: add })));
  await step("legacy listens", async () => {
    const stop = new AbortController();
    const headers = { Accept: "text/event-stream", Authorization: `Bearer ${token}`, ...session };
    const { status } = await fetch(url, { headers, signal: stop.signal });
    stop.abort();
    return status;
  });
  await step("legacy ends", async () => (await send(session, undefined, "DELETE")).status);

  // What a page can send without being asked for it: no token, and a type that needs no preflight.
  await step("sends blindly", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 9, method: "tools/call", params: { ...add, _meta } });
    const response = await fetch(url, { method: "POST", mode: "no-cors", body });
    return response.type;
  });
  await step("without the token", async () => (await fetch(url, { method: "POST", body: "{}" })).status);
  await fetch("/report", { method: "POST", body: JSON.stringify({ origin: location.origin, steps }) });
};

const reports = [];
let told = () => {};
const server = createServer((request, response) => {
  if (request.method === "POST") {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      response.end();
      reports.push(body);
      told();
    });
    return;
  }
  response.setHeader("Content-Type", "text/html");
  const script = `(${page})(${JSON.stringify(URL_OF_DOOR)}, ${JSON.stringify(TOKEN)})`;
  response.end(request.url === "/" ? `<!doctype html><title>page</title><script>${script}</script>` : "");
});
server.listen(0);
await once(server, "listening");

for (const host of ["localhost", "127.0.0.1"]) {
  const reported = new Promise((resolve) => (told = resolve));
  const browser = spawn(
    BROWSER,
    [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
      `--user-data-dir=${PROFILES}/${host}`, `http://${host}:${server.address().port}/`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  browser.stderr.on("data", (part) => (said += part));
  const late = setTimeout(() => {
    console.log(`no report from ${host}: ${said}`);
    browser.kill("SIGKILL");
    process.exit(1);
  }, DEADLINE_MS);
  const ended = once(browser, "exit");
  await Promise.race([reported, ended]);
  clearTimeout(late);
  // In order, so that nothing writes into its profile any more when that is removed.
  browser.kill("SIGTERM");
  const killed = setTimeout(() => browser.kill("SIGKILL"), END_MS);
  await ended;
  clearTimeout(killed);
  if (reports.length === 0) {
    console.log(`the browser ended: ${said}`);
    process.exit(1);
  }
  console.log(reports.pop());
}
process.exit(0);
