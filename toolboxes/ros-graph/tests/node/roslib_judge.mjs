// The published roslib, as judge of rosbridge_base.mjs: roslib_judge.mjs NODE_MODULES URL. It does what our client does, and
// fails where the base does not answer as a rosbridge.
import assert from 'node:assert';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, url] = process.argv.slice(2);
const { Ros, Topic, Service, Action } = await import(pathToFileURL(path.join(modules, 'roslib/dist/RosLib.js')));
const ros = new Ros({ url });
await new Promise((resolve, reject) => { ros.on('connection', resolve); ros.on('error', reject); });
const asked = (start) => new Promise((resolve, reject) => start(resolve, reject));

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
