// A base behind a small rosbridge, as rosbridge_suite 2 speaks: rosbridge_base.mjs NODE_MODULES [PORT [drives]]. roslib judges it
// (roslib_judge.mjs). It prints its port, then a line of JSON for everything that reaches it. /odom comes at 20 Hz, /scan has an
// infinity, /cmd_vel is a Twist that it hears, /deaf nothing hears. Services: /motor_power, /slow (never answers), rosapi.
// Its odometry grows by itself; one that `drives` follows its last velocity for ever.
// The action /navigate_to_pose takes 0.1 s a metre and can be cancelled. `drop` on standard input ends all connections, and
// `away N` refuses new ones for N milliseconds.
import path from 'node:path';
import readline from 'node:readline';
import { createRequire } from 'node:module';

const [modules, port, drives] = process.argv.slice(2);
const { WebSocketServer } = createRequire(path.join(modules, 'index.js'))('ws');
const say = (frame) => console.log(JSON.stringify({ t: Number(process.hrtime.bigint()) / 1e9, ...frame }));

const TOPICS = {
  '/odom': 'nav_msgs/msg/Odometry',
  '/scan': 'sensor_msgs/msg/LaserScan',
  '/cmd_vel': 'geometry_msgs/msg/Twist',
  '/deaf': 'geometry_msgs/msg/Twist',
  '/picture': 'sensor_msgs/msg/CompressedImage',
};
const SERVICES = { '/motor_power': 'std_srvs/srv/SetBool', '/slow': 'std_srvs/srv/Trigger' };
const type = (fieldnames, fieldtypes, name = '') => ({
  type: name, fieldnames, fieldtypes, fieldarraylen: fieldtypes.map(() => -1), examples: [], constnames: [], constvalues: [],
});
const goals = new Map();
let x = 0;
let speed = 0;

const rosapi = {
  topics: () => ({ topics: Object.keys(TOPICS), types: Object.values(TOPICS) }),
  services: () => ({ services: [...Object.keys(SERVICES), '/navigate_to_pose/_action/cancel_goal'] }),
  action_servers: () => ({ action_servers: ['/navigate_to_pose'] }),
  topic_type: ({ topic }) => ({ type: TOPICS[topic] ?? '' }),
  service_type: ({ service }) => ({ type: SERVICES[service] ?? '' }),
  action_type: ({ action }) => ({ type: action === '/navigate_to_pose' ? 'nav2_msgs/action/NavigateToPose' : '' }),
  subscribers: ({ topic }) => ({ subscribers: topic === '/cmd_vel' ? ['/base'] : [] }),
  service_request_details: ({ type: of }) =>
    ({ typedefs: of === 'std_srvs/srv/SetBool' ? [type(['data'], ['boolean'])] : [] }),
  service_response_details: ({ type: of }) =>
    ({ typedefs: of === 'std_srvs/srv/SetBool' ? [type(['success', 'message'], ['boolean', 'string'])] : [] }),
};

function call({ service, args }) {
  if (service.startsWith('/rosapi/') || service.startsWith('rosapi/')) {
    const answer = rosapi[service.replace(/^\/?rosapi\//, '')];
    if (!answer) throw new Error(`Service ${service} does not exist`);
    return answer(args ?? {});
  }
  if (service === '/motor_power') {
    if (typeof args.data !== 'boolean') throw new Error('std_srvs/SetBool message requires a boolean for field data');
    say({ power: args.data });
    return { success: args.data, message: args.data ? 'on' : 'off' };
  }
  if (service === '/navigate_to_pose/_action/cancel_goal') {
    say({ cancel: goals.size, all: !args.goal_info });
    for (const goal of goals.values()) goal.cancelled = true;
    return { return_code: 0, goals_canceling: [] };
  }
  if (service === '/slow') {
    say({ slow: true });
    return undefined;
  }
  throw new Error(`Service ${service} does not exist`);
}

function pose(at) {
  return { header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'map' }, pose: { position: { x: at, y: 0, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } } };
}

const odometry = () => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'odom' },
  child_frame_id: 'base_link',
  pose: { pose: pose(x).pose, covariance: Array(36).fill(0) },
  twist: { twist: { linear: { x: speed, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } }, covariance: Array(36).fill(0) },
});
const scan = () => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'laser' }, angle_min: -1, angle_max: 1, angle_increment: 0.5,
  time_increment: 0, scan_time: 0, range_min: 0.1, range_max: 10, ranges: [1, null, 0.1], intensities: [],
});
const picture = () => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'camera' }, format: 'jpeg', data: Buffer.alloc(1000, 7).toString('base64'),
});

let refusedUntil = 0;
const server = new WebSocketServer({ port: Number(port ?? 0), host: '127.0.0.1', verifyClient: () => Date.now() >= refusedUntil });
server.on('listening', () => say({ port: server.address().port, ready: true }));
server.on('connection', (socket) => {
  const send = (message) => socket.readyState === 1 && socket.send(JSON.stringify(message));
  const topics = new Set();
  const made = { '/odom': odometry, '/scan': scan, '/picture': picture };
  const ticking = setInterval(() => {
    for (const topic of topics) if (made[topic]) send({ op: 'publish', topic, msg: made[topic]() });
  }, 50);
  socket.on('close', () => clearInterval(ticking));
  socket.on('message', (text) => {
    const message = JSON.parse(text);
    const { op, id, topic } = message;
    if (op === 'subscribe') {
      say({ subscribe: topic, as: message.type });
      topics.add(topic);
    } else if (op === 'unsubscribe') {
      say({ unsubscribe: topic });
      topics.delete(topic);
    } else if (op === 'advertise' || op === 'unadvertise') {
      say({ [op]: topic, as: message.type });
    } else if (op === 'publish') {
      if (topic === '/cmd_vel') {
        if (drives) speed = message.msg.linear.x;
        say({ cmd_vel: message.msg.linear.x });
      }
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
      if (goals.has(id)) goals.get(id).cancelled = true;
    }
  });
});

function run({ id, action, args }, send) {
  const distance = args.pose.pose.position.x;
  if (Math.abs(distance) > 1000) {
    send({ op: 'action_result', id, action, values: 'Action goal was rejected', status: 0, result: false });
    return;
  }
  say({ goal: distance });
  const goal = { cancelled: false, left: distance };
  goals.set(id, goal);
  const tick = setInterval(() => {
    const end = (status, word) => {
      clearInterval(tick);
      goals.delete(id);
      say({ [word]: id });
      send({ op: 'action_result', id, action, values: {}, status, result: true });
    };
    if (goal.cancelled) return end(5, 'canceled');
    if (goal.left <= 0) return end(4, 'reached');
    goal.left -= 1;
    send({
      op: 'action_feedback', id, action,
      values: {
        current_pose: pose(distance - goal.left), navigation_time: { sec: 0, nanosec: 0 },
        estimated_time_remaining: { sec: 0, nanosec: 0 }, number_of_recoveries: 0, distance_remaining: goal.left,
      },
    });
  }, 100);
}

setInterval(() => { x += drives ? speed * 0.05 : 0.01; }, 50);
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [word, number] = line.split(' ');
  if (word === 'away') refusedUntil = Date.now() + Number(number);
  if (word === 'drop' || word === 'away') for (const socket of server.clients) socket.terminate();
  if (word === 'quit') process.exit(0);
}).on('close', () => process.exit(0));
