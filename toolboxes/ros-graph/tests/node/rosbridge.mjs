// A small rosbridge with rosapi, as rosbridge_suite 2 speaks, for peers of the tests: serve(NODE_MODULES, PORT, ROBOT). It prints its
// port, then a line of JSON for everything that reaches it. ROBOT has `topics` and `services` with their types, `publishes` (what is sent
// on a topic, 20 times a second), `latches` (what each new subscription to a topic is sent), `hears(topic, message)`, `listens(topic)`,
// `call(service, args)` (undefined is no answer), `details` (typedefs by type), and `actions`: the `type` of each, and `accept(args)`,
// which is nothing where a goal is not accepted, and otherwise a goal whose `step(cancelled)`, ten times a second, gives `feedback`, or the
// `status` and the `values` of its end.
import path from 'node:path';
import readline from 'node:readline';
import { createRequire } from 'node:module';

export const say = (frame) => console.log(JSON.stringify({ t: Number(process.hrtime.bigint()) / 1e9, ...frame }));

export const type = (fieldnames, fieldtypes, name = '') => ({
  type: name, fieldnames, fieldtypes, fieldarraylen: fieldtypes.map(() => -1), examples: [], constnames: [], constvalues: [],
});

// What has been said on standard input: `drop` ends all connections, `away N` refuses new ones for N milliseconds, and so it does for half a
// second when it `vanishes` with the next goal; `silent` ends what is published, `quit` the peer. One that `objects` does not take the next
// cancel of one goal, and one that `forgets` says that it knows no goal, pursues it, and ends it only with all others. Of its rosapi, one that
// `fails` answers with errors, one that is `mute` not at all, and it says so; and nothing listens any more where all `leave`.
export const words = new Set();

export function serve(modules, port, robot) {
  const { WebSocketServer } = createRequire(path.join(modules, 'index.js'))('ws');
  const goals = new Map();
  const cancelService = (action) => `${action}/_action/cancel_goal`;
  const details = ({ type: of }, part) => ({ typedefs: robot.details?.[of]?.[part] ?? [] });
  const rosapi = {
    topics: () => ({ topics: Object.keys(robot.topics), types: Object.values(robot.topics) }),
    services: () => ({ services: [...Object.keys(robot.services), ...Object.keys(robot.actions).map(cancelService)] }),
    action_servers: () => ({ action_servers: Object.keys(robot.actions) }),
    topic_type: ({ topic }) => ({ type: robot.topics[topic] ?? '' }),
    service_type: ({ service }) => ({ type: robot.services[service] ?? '' }),
    action_type: ({ action }) => ({ type: robot.actions[action]?.type ?? '' }),
    subscribers: ({ topic }) => ({ subscribers: robot.listens?.(topic) && !words.has('leave') ? ['/base'] : [] }),
    service_request_details: (args) => details(args, 'request'),
    service_response_details: (args) => details(args, 'response'),
  };

  function call({ service, args }) {
    if (service.startsWith('/rosapi/') || service.startsWith('rosapi/')) {
      const answer = rosapi[service.replace(/^\/?rosapi\//, '')];
      if (!answer) throw new Error(`Service ${service} does not exist`);
      if (words.has('mute')) return say({ unanswered: service });
      if (words.has('fails')) {
        say({ failed: service });
        throw new Error('rosapi fails');
      }
      return answer(args ?? {});
    }
    const action = Object.keys(robot.actions).find((name) => cancelService(name) === service);
    if (action) {
      const own = [...goals.values()].filter((goal) => goal.action === action);
      say({ cancel: own.length, all: !args.goal_info });
      for (const goal of own) goal.cancelled = true;
      return { return_code: 0, goals_canceling: [] };
    }
    if (service in robot.services) return robot.call(service, args);
    throw new Error(`Service ${service} does not exist`);
  }

  function run({ id, action, args, action_type: of }, send) {
    const served = robot.actions[action];
    const fail = (values) => send({ op: 'action_result', id, action, values, status: 0, result: false });
    if (!served || served.type !== of) return fail('No action server available');
    const accepted = served.accept(args);
    if (!accepted) return fail('Action goal was rejected');
    const goal = { action, cancelled: false };
    goals.set(id, goal);
    if (words.has('forgets')) send({ op: 'action_result', id, action, values: {}, status: 0, result: true });
    if (words.delete('vanishes')) away(500);
    const tick = setInterval(() => {
      const { feedback, status, values } = accepted.step(goal.cancelled);
      if (status === undefined) return feedback && send({ op: 'action_feedback', id, action, values: feedback });
      clearInterval(tick);
      goals.delete(id);
      say({ [{ 4: 'reached', 5: 'canceled' }[status] ?? 'ended']: id });
      send({ op: 'action_result', id, action, values: values ?? {}, status, result: true });
    }, 100);
  }

  let refusedUntil = 0;
  const drop = () => { for (const socket of server.clients) socket.terminate(); };
  function away(milliseconds) {
    refusedUntil = Date.now() + milliseconds;
    drop();
  }
  const server = new WebSocketServer({ port: Number(port ?? 0), host: '127.0.0.1', verifyClient: () => Date.now() >= refusedUntil });
  server.on('listening', () => say({ port: server.address().port, ready: true }));
  server.on('connection', (socket) => {
    const send = (message) => socket.readyState === 1 && socket.send(JSON.stringify(message));
    // The ids under which a topic is subscribed to, and under which it is announced: it is so until the last of them is withdrawn.
    const [subscribed, announced] = [new Map(), new Map()];
    const enter = (entries, topic, id) => entries.set(topic, new Set(entries.get(topic)).add(id));
    const withdraw = (entries, topic, id) => {
      entries.get(topic)?.delete(id);
      if (id === undefined || !entries.get(topic)?.size) entries.delete(topic);
    };
    const ticking = setInterval(() => {
      if (words.has('silent')) return;
      for (const topic of subscribed.keys()) {
        if (robot.publishes[topic]) send({ op: 'publish', topic, msg: robot.publishes[topic]() });
      }
    }, 50);
    socket.on('close', () => clearInterval(ticking));
    socket.on('message', (text) => {
      const message = JSON.parse(text);
      const { op, id, topic } = message;
      if (op === 'subscribe') {
        say({ subscribe: topic, as: message.type });
        enter(subscribed, topic, id);
        if (robot.latches?.[topic]) send({ op: 'publish', topic, msg: robot.latches[topic]() });
      } else if (op === 'unsubscribe') {
        say({ unsubscribe: topic });
        withdraw(subscribed, topic, id);
      } else if (op === 'advertise' || op === 'unadvertise') {
        say({ [op]: topic, as: message.type });
        (op === 'advertise' ? enter : withdraw)(announced, topic, id);
      } else if (op === 'publish') {
        // What is not announced is heard late or not at all.
        if (announced.has(topic)) robot.hears?.(topic, message.msg);
        else say({ unannounced: topic });
      } else if (op === 'call_service') {
        const { service } = message;
        try {
          const values = call(message);
          if (values !== undefined) send({ op: 'service_response', id, service, values, result: true });
        } catch (error) {
          send({ op: 'service_response', id, service, values: error.message, result: false });
        }
      } else if (op === 'send_action_goal') {
        run(message, send);
      } else if (op === 'cancel_action_goal') {
        say({ cancel_one: id });
        if (words.delete('objects')) say({ objected: id });
        else if (goals.has(id) && !words.has('forgets')) goals.get(id).cancelled = true;
      }
    });
  });
  readline.createInterface({ input: process.stdin }).on('line', (line) => {
    const [word, number] = line.split(' ');
    words.add(word);
    if (word === 'away') away(Number(number));
    if (word === 'drop') drop();
    if (word === 'quit') process.exit(0);
  }).on('close', () => process.exit(0));
}
