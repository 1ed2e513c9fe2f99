// The clients of the TypeScript SDK that give up after 3, 5 and 10 s, while a machine moves for longer:
// mcp_patience.mjs PACKAGES MAJOR TRANSPORT DOOR BUS [URL TOKEN]. The door answers within 2 s, and its lease is 4 s.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, major, transport, door, bus, url, token] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(join(packages, "x.js")).resolve(name)).href);
const parts = major === "1"
  ? ["sdk/client/index.js", "sdk/client/stdio.js", "sdk/client/streamableHttp.js"]
  : ["client", "client/stdio"];
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign(
  {},
  ...(await Promise.all(parts.map((part) => load(`@modelcontextprotocol/${part}`)))),
);

const expect = (isSo, what) => {
  if (!isSo) throw new Error(typeof what === "string" ? what : JSON.stringify(what));
};

async function client(patience, part) {
  const client = new Client({ name: "patience", version: "1" });
  await client.connect(
    transport === "stdio"
      ? new StdioClientTransport({ command: door, args: ["--bus", bus], env: process.env })
      : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }),
  );
  const call = (name, args, timeout = patience * 1000) =>
    client.callTool({ name, arguments: args }, ...(major === "1" ? [undefined] : []), { timeout });
  const begin = async (seconds) => {
    const motion = { subsystems: [part], step_ms: 2, steps: seconds * 125, timeout_ms: 300000 };
    const result = await call("assemble", motion);
    expect(!result.isError && result.structuredContent.state === "running", result);
    return result.structuredContent.call_id;
  };

  const whole = await begin(6);
  let result;
  do result = await call("wait_call", { call_id: whole });
  while (result.structuredContent.state === "running");
  expect(result.structuredContent.success === true, result);

  const cancelled = await call("cancel_call", { call_id: await begin(60) });
  expect(cancelled.isError && JSON.stringify(cancelled).includes("its client cancelled it"), cancelled);

  // A request that is given up ends its motion, as ever.
  const given = await begin(60);
  const late = await call("wait_call", { call_id: given }, 500).then(() => "an answer", (error) => String(error));
  expect(late.includes("timed out"), late);
  const ended = await call("wait_call", { call_id: given });
  expect(ended.isError && ended.structuredContent.state !== "running", ended);
  await client.close();
}

await Promise.all([client(3, "left_arm"), client(5, "right_arm"), client(10, "gantry")]);
console.log("nothing stopped half way");
