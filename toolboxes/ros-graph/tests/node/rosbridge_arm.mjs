// An arm behind a small rosbridge, with the joints of a UR: rosbridge_arm.mjs NODE_MODULES KIND. roslib judges it (roslib_judge.mjs).
// /joint_states comes at 20 Hz. The action /scaled_joint_trajectory_controller/follow_joint_trajectory follows a trajectory of one point,
// its hand takes GripperCommand on /gripper/gripper_cmd, or ParallelGripperCommand where KIND is `parallel`; where KIND is `other` the
// controller is of another type, and where it is `absent` there is none. Words besides those of rosbridge.mjs: it is `stubborn`
// about every cancel, and finds a `thing` of 3 cm between its fingers.
import { say, serve, words } from './rosbridge.mjs';

const [modules, kind = 'gripper'] = process.argv.slice(2);
const JOINTS = ['shoulder_pan', 'shoulder_lift', 'elbow', 'wrist_1', 'wrist_2', 'wrist_3'].map((name) => `${name}_joint`);
const FINGER = 'finger_joint';
const radians = (degrees) => (degrees * Math.PI) / 180;
const at = Object.fromEntries([...JOINTS, FINGER].map((name, index) => [name, [...[0, -90, 90, -90, -90, 0].map(radians), 0.08][index]]));
const header = () => ({ stamp: { sec: 0, nanosec: 0 }, frame_id: '' });
const state = (names) => ({ header: header(), name: names, position: names.map((name) => at[name]), velocity: [], effort: [] });
const point = (names) => ({
  positions: names.map((name) => at[name]), velocities: [], accelerations: [], effort: [], time_from_start: { sec: 0, nanosec: 0 },
});

function follow({ trajectory }) {
  const { joint_names: names, points } = trajectory;
  if ([...names].sort().join() !== [...JOINTS].sort().join() || points.length !== 1) return undefined;
  const start = { ...at };
  const { sec, nanosec } = points[0].time_from_start;
  const steps = Math.max(1, Math.ceil((sec + nanosec / 1e9) * 10));
  let done = 0;
  say({ goal: steps, degrees: JOINTS.map((name) => (points[0].positions[names.indexOf(name)] * 180) / Math.PI) });
  return {
    step(cancelled) {
      if (cancelled && !words.has('stubborn')) return { status: 5, values: { error_code: 0, error_string: '' } };
      done += 1;
      const part = (done / steps) ** 2 * (3 - (2 * done) / steps);
      names.forEach((name, index) => { at[name] = start[name] + (points[0].positions[index] - start[name]) * part; });
      if (done >= steps) return { status: 4, values: { error_code: 0, error_string: '' } };
      return { feedback: { header: header(), joint_names: names, desired: point(names), actual: point(names), error: point(names) } };
    },
  };
}

function grip({ command }) {
  const parallel = kind === 'parallel';
  const to = parallel ? command.position[0] : command.position;
  say({ grips: to, effort: parallel ? command.effort[0] : command.max_effort });
  const report = (stalled, reached) => ({
    ...(parallel ? { state: state([FINGER]) } : { position: at[FINGER], effort: 0 }), stalled, reached_goal: reached,
  });
  return {
    step(cancelled) {
      if (cancelled) return { status: 5, values: report(false, false) };
      const least = words.has('thing') && to < at[FINGER] ? 0.03 : 0;
      at[FINGER] = Math.max(least, at[FINGER] + Math.sign(to - at[FINGER]) * Math.min(0.02, Math.abs(to - at[FINGER])));
      if (Math.abs(at[FINGER] - to) < 1e-6) return { status: 4, values: report(false, true) };
      if (at[FINGER] <= least) return { status: 4, values: report(true, false) };
      return { feedback: report(false, false) };
    },
  };
}

const of = (name) => `control_msgs/action/${name}`;
const controller = {
  '/scaled_joint_trajectory_controller/follow_joint_trajectory': {
    type: of(kind === 'other' ? 'GripperCommand' : 'FollowJointTrajectory'), accept: follow,
  },
};
serve(modules, 0, {
  topics: { '/joint_states': 'sensor_msgs/msg/JointState' },
  services: {},
  publishes: { '/joint_states': () => state([...JOINTS, FINGER]) },
  actions: {
    ...(kind === 'absent' ? {} : controller),
    '/gripper/gripper_cmd': { type: of(kind === 'parallel' ? 'ParallelGripperCommand' : 'GripperCommand'), accept: grip },
  },
});
