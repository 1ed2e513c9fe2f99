// A base behind a small rosbridge: rosbridge_base.mjs NODE_MODULES [PORT [drives [KIND]]]. roslib judges it (roslib_judge.mjs).
// /odom comes at 20 Hz, /scan has an infinity, /cmd_vel is a Twist that it hears, /deaf nothing hears. Services: /motor_power, /slow
// (never answers), rosapi. Its odometry grows by itself; one that `drives` follows its last velocity for ever; KIND says how it hears
// /cmd_vel: `twist`, `text` (std_msgs/String), or `deaf` (not at all). /kept is a latched 1, and /counted counts on, from 1000 for its
// first subscription, from 2000 for its second. The action /navigate_to_pose takes 0.1 s a metre and can be
// cancelled. Words besides those of rosbridge.mjs: its wheels are `stuck`.
import { say, serve, type, words } from './rosbridge.mjs';

const [modules, port, drives, kind = 'twist'] = process.argv.slice(2);
let x = 0;
let speed = 0;
let [round, count] = [0, 0];

const pose = (at) => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'map' }, pose: { position: { x: at, y: 0, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } },
});
const odometry = () => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'odom' },
  child_frame_id: 'base_link',
  pose: { pose: pose(x).pose, covariance: Array(36).fill(0) },
  twist: { twist: { linear: { x: words.has('stuck') ? 0 : speed, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } }, covariance: Array(36).fill(0) },
});
const scan = () => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'laser' }, angle_min: -1, angle_max: 1, angle_increment: 0.5,
  time_increment: 0, scan_time: 0, range_min: 0.1, range_max: 10, ranges: [1, null, 0.1], intensities: [],
});
const picture = () => ({
  header: { stamp: { sec: 0, nanosec: 0 }, frame_id: 'camera' }, format: 'jpeg', data: Buffer.alloc(1000, 7).toString('base64'),
});

function navigate(args) {
  const distance = args.pose.pose.position.x;
  if (Math.abs(distance) > 1000) return undefined;
  say({ goal: distance });
  let left = distance;
  return {
    step(cancelled) {
      if (cancelled) return { status: 5 };
      if (left <= 0) return { status: 4 };
      left -= 1;
      return {
        feedback: {
          current_pose: pose(distance - left), navigation_time: { sec: 0, nanosec: 0 },
          estimated_time_remaining: { sec: 0, nanosec: 0 }, number_of_recoveries: 0, distance_remaining: left,
        },
      };
    },
  };
}

setInterval(() => { x += drives ? (words.has('stuck') ? 0 : speed * 0.05) : 0.01; }, 50);
serve(modules, port, {
  topics: {
    '/odom': 'nav_msgs/msg/Odometry',
    '/scan': 'sensor_msgs/msg/LaserScan',
    '/cmd_vel': kind === 'text' ? 'std_msgs/msg/String' : 'geometry_msgs/msg/Twist',
    '/deaf': 'geometry_msgs/msg/Twist',
    '/picture': 'sensor_msgs/msg/CompressedImage',
    '/counted': 'std_msgs/msg/Int64',
    '/kept': 'std_msgs/msg/Int64',
  },
  services: { '/motor_power': 'std_srvs/srv/SetBool', '/slow': 'std_srvs/srv/Trigger' },
  details: {
    'std_srvs/srv/SetBool': {
      request: [type(['data'], ['boolean'])], response: [type(['success', 'message'], ['boolean', 'string'])],
    },
  },
  publishes: { '/odom': odometry, '/scan': scan, '/picture': picture, '/counted': () => ({ data: (count += 1) }) },
  latches: { '/kept': () => ({ data: 1 }), '/counted': () => ({ data: (count = 1000 * (round += 1)) }) },
  actions: { '/navigate_to_pose': { type: 'nav2_msgs/action/NavigateToPose', accept: navigate } },
  listens: (topic) => topic === '/cmd_vel' && kind !== 'deaf',
  hears(topic, message) {
    if (topic !== '/cmd_vel') return;
    if (drives) speed = message.linear.x;
    say({ cmd_vel: message.linear.x });
  },
  call(service, args) {
    if (service === '/slow') {
      say({ slow: true });
      return undefined;
    }
    if (typeof args.data !== 'boolean') throw new Error('std_srvs/SetBool message requires a boolean for field data');
    say({ power: args.data });
    return { success: args.data, message: args.data ? 'on' : 'off' };
  },
});
