// Clients of Node on our bus: node bus_clients.mjs NODE_MODULES HOST:PORT. A client in a browser says which page it is (Origin); one in a
// program says nothing, or its own Host.
import assert from 'node:assert';
import path from 'node:path';
import { createRequire } from 'node:module';

const [modules, host] = process.argv.slice(2);
const Ws = createRequire(path.join(modules, 'index.js'))('ws');
const url = `ws://${host}/core`;
const ask = JSON.stringify({ type: 'ovos.tools.invoke', data: { name: 'add', args: { a: 1, b: 2 }, call_id: 'node' }, context: {} });

/** What a tool answers, or the status with which the bus refuses the connection. */
function asked(socket) {
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => socket.send(ask));
    socket.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.type === 'ovos.tools.invoke.response') resolve(frame.data.result);
    });
    socket.addEventListener('error', (event) => reject(new Error(event.message)));
  }).finally(() => socket.close());
}

const sum = { result: 3 };
assert.deepEqual(await asked(new WebSocket(url)), sum, 'the WebSocket of Node');
assert.deepEqual(await asked(new Ws(url)), sum, 'ws without an Origin');
assert.deepEqual(await asked(new Ws(url, { origin: `http://${host}` })), sum, 'ws whose Origin is the Host');
for (const origin of ['https://evil.example', 'null', `http://${host}.evil.example`, 'http://localhost:1']) {
  await assert.rejects(asked(new Ws(url, { origin })), /403/, origin);
}
console.log('the clients of Node have their answers');
process.exit(0);
