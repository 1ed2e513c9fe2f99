// The published roslib, as judge of rosbridge_base.mjs: roslib_judge.mjs NODE_MODULES URL, and of rosbridge_arm.mjs: with a word after
// the URL. It does what our client does, and fails where the peer does not answer as a rosbridge.
import assert from 'node:assert';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, url, arm] = process.argv.slice(2);
const { Ros, Topic, Service, Action } = await import(pathToFileURL(path.join(modules, 'roslib/dist/RosLib.js')));
const ros = new Ros({ url });
await new Promise((resolve, reject) => { ros.on('connection', resolve); ros.on('error', reject); });
const asked = (start) => new Promise((resolve, reject) => start(resolve, reject));

if (arm) {
  const names = ['shoulder_pan', 'shoulder_lift', 'elbow', 'wrist_1', 'wrist_2', 'wrist_3'].map((name) => `${name}_joint`);
  const trajectory = (seconds) => ({
    trajectory: { joint_names: names, points: [{ positions: [1, -1, 1, -1, -1, 0], velocities: [0, 0, 0, 0, 0, 0], time_from_start: { sec: seconds, nanosec: 0 } }] },
  });
  const follow = new Action({
    ros, name: '/scaled_joint_trajectory_controller/follow_joint_trajectory', actionType: 'control_msgs/action/FollowJointTrajectory',
  });
  const shares = [];
  const reached = await asked((resolve, reject) => follow.sendGoal(trajectory(1), resolve, ({ actual }) => shares.push(actual.positions[0]), reject));
  assert.equal(reached.error_code, 0);
  assert.ok(shares.length > 5 && shares.at(-1) > 0.9);
  await asked((resolve) => {
    const ended = () => resolve();
    const id = follow.sendGoal(trajectory(60), ended, () => follow.cancelGoal(id), ended);
  });
  const hand = new Action({ ros, name: '/gripper/gripper_cmd', actionType: 'control_msgs/action/GripperCommand' });
  const closed = await asked((resolve, reject) => hand.sendGoal({ command: { position: 0, max_effort: 20 } }, resolve, () => {}, reject));
  assert.equal(closed.reached_goal, true);
  console.log('judged');
  process.exit(0);
}

const topics = await asked((resolve, reject) => ros.getTopics(resolve, reject));
assert.equal(topics.types[topics.topics.indexOf('/odom')], 'nav_msgs/msg/Odometry');
assert.equal(await asked((resolve, reject) => ros.getTopicType('/cmd_vel', resolve, reject)), 'geometry_msgs/msg/Twist');
assert.equal(await asked((resolve, reject) => ros.getServiceType('/motor_power', resolve, reject)), 'std_srvs/srv/SetBool');
assert.deepEqual(await asked((resolve, reject) => ros.getActionServers(resolve, reject)), ['/navigate_to_pose']);

const odometry = new Topic({ ros, name: '/odom', messageType: 'nav_msgs/msg/Odometry' });
const message = await asked((resolve) => odometry.subscribe(resolve));
assert.equal(message.child_frame_id, 'base_link');
odometry.unsubscribe();

const velocity = new Topic({ ros, name: '/cmd_vel', messageType: 'geometry_msgs/msg/Twist' });
velocity.advertise();
velocity.publish({ linear: { x: 0.5, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } });

const power = new Service({ ros, name: '/motor_power', serviceType: 'std_srvs/srv/SetBool' });
assert.deepEqual(await asked((resolve, reject) => power.callService({ data: true }, resolve, reject)), { success: true, message: 'on' });
await assert.rejects(asked((resolve, reject) => power.callService({ data: 1 }, resolve, reject)));

const action = new Action({ ros, name: '/navigate_to_pose', actionType: 'nav2_msgs/action/NavigateToPose' });
const goal = (x) => ({ pose: { pose: { position: { x, y: 0, z: 0 } } } });
const left = [];
await asked((resolve, reject) => action.sendGoal(goal(2), resolve, ({ distance_remaining }) => left.push(distance_remaining), reject));
assert.deepEqual(left, [1, 0]);
await assert.rejects(asked((resolve, reject) => action.sendGoal(goal(5000), resolve, () => {}, reject)));
let id;
await asked((resolve, reject) => {
  // A goal that is cancelled ends with its result, or as a failure that names its status.
  const ended = () => resolve();
  id = action.sendGoal(goal(500), ended, () => action.cancelGoal(id), ended);
  setTimeout(() => reject(new Error('the cancel was not answered')), 5000);
});
console.log('judged');
process.exit(0);
