//! The channels of a robot in a graph of ROS, as its file gives them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ovos_toolbox_sdk::wire::Effect;
use ros_graph::velocity::VelocityConfig;
use serde::Deserialize;
use serde_json::Value;

use crate::adapter::booster_k1::VelocityType;
use crate::model::ModelError;
use crate::ros::RosConfig;
use crate::subsystem::Subsystem;

/// nav2_msgs/action/NavigateToPose.
const NAVIGATE: &str = "nav2_msgs/action/NavigateToPose";
/// What moves an arm.
pub(super) const TRAJECTORY: &str = "control_msgs/action/FollowJointTrajectory";
/// What moves a hand: the older, and the newer that replaces it.
pub(super) const GRIPPERS: [&str; 2] = [
    "control_msgs/action/GripperCommand",
    "control_msgs/action/ParallelGripperCommand",
];
/// The least that full force may be, in newtons.
const LEAST_FORCE: f64 = 0.01;
/// Where joint states come from by default.
const JOINTS: &str = "/joint_states";

/// The channels of a robot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RosBaseConfig {
    /// Domain, interfaces, distribution.
    pub ros: RosConfig,
    /// The address of a rosbridge, such as `ws://robot:9090`, where the graph is not reached over DDS.
    pub rosbridge: Option<String>,
    /// Folders with the definitions of types that are not known here: `share` of an installation, or a package.
    pub interfaces: Vec<PathBuf>,
    /// Where velocities go.
    pub velocity: VelocityChannel,
    /// nav_msgs/Odometry: movements are as long as it says.
    pub odometry: Option<String>,
    /// sensor_msgs/BatteryState.
    pub battery: Option<String>,
    /// sensor_msgs/LaserScan: nothing drives into what it shows.
    pub scan: Option<ScanChannel>,
    /// sensor_msgs/JointState, or control_msgs/JointTrajectoryControllerState. A robot with arms has `/joint_states` where this is left out.
    pub joints: Option<String>,
    /// The arms, and their hands.
    pub arms: BTreeMap<Subsystem, ArmChannel>,
    /// nav2_msgs/action/NavigateToPose.
    pub navigate: Option<NavigateChannel>,
    /// The robot's own actions and services, each a tool of its name.
    pub tools: BTreeMap<String, OwnTool>,
    /// The vendor's own stop, which an emergency calls last.
    pub emergency: Option<EmergencyChannel>,
}

/// Where velocities go.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VelocityChannel {
    /// geometry_msgs/Twist or geometry_msgs/TwistStamped, as the robot reads it.
    pub topic: String,
    /// The type, where others read the topic under both.
    pub r#type: VelocityType,
    /// The frame of stamped velocities.
    pub frame: String,
}

impl Default for VelocityChannel {
    fn default() -> Self {
        let VelocityConfig { topic, frame, .. } = VelocityConfig::default();
        Self {
            topic,
            frame,
            r#type: VelocityType::default(),
        }
    }
}

/// Where the scan comes from, and how much way stays free.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanChannel {
    /// The topic.
    pub topic: String,
    /// Where straight ahead is in the angles of the scan: degrees, counter-clockwise.
    #[serde(default)]
    pub ahead: f64,
    /// A drive ends this far from what is in its way, in metres from the scanner.
    #[serde(default = "keep_free")]
    pub keep_free: f64,
    /// Half the width of the way that has to be free, in metres.
    #[serde(default = "half_width")]
    pub half_width: f64,
}

fn keep_free() -> f64 {
    0.3
}

fn half_width() -> f64 {
    0.2
}

/// How the base finds its own way.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NavigateChannel {
    /// The action.
    pub action: String,
    /// The frame of its places.
    #[serde(default = "map")]
    pub frame: String,
    /// geometry_msgs/PoseWithCovarianceStamped: where the base is in that frame.
    #[serde(default)]
    pub pose: Option<String>,
}

fn map() -> String {
    "map".to_owned()
}

/// How an arm is moved. Its joints have the names of the graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmChannel {
    /// control_msgs/action/FollowJointTrajectory.
    pub trajectory: String,
    /// How far a joint may be beside its way before the controller gives up, in degrees.
    #[serde(default = "beside")]
    pub path_tolerance: f64,
    /// How close to its goal each joint comes, in degrees: by the controller, and by what the joints measure.
    #[serde(default = "close")]
    pub goal_tolerance: f64,
    /// How much later than planned the goal may be reached, in seconds.
    #[serde(default = "late")]
    pub late: f64,
    /// Its hand.
    pub gripper: Option<HandChannel>,
}

/// The default of the UR driver's controllers is 0.2 rad.
fn beside() -> f64 {
    10.0
}

fn close() -> f64 {
    1.0
}

fn late() -> f64 {
    2.0
}

/// How a hand is moved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandChannel {
    /// control_msgs/action/GripperCommand or ParallelGripperCommand, as the graph says.
    pub action: String,
    /// Its joint, as the joint states name it.
    pub joint: String,
    /// Where the joint is when the hand is open, in metres or radians as the joint states have it.
    pub open: f64,
    /// Where it is when the hand is closed.
    pub closed: f64,
    /// What full force is, in newtons, or newton metres of a joint that turns. ParallelGripperCommand leaves it to the controller where
    /// this is left out. GripperCommand has no way to: 0 is no force for a controller of effort (ros2_controllers clamps to it), and a
    /// movement that does not grasp for a Franka hand.
    pub force: Option<f64>,
}

/// An action that may have goals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ActionChannel {
    pub(super) name: String,
    /// The part that it moves.
    pub(super) on: Subsystem,
    /// The types that it may have; any where there are none.
    pub(super) types: Vec<&'static str>,
}

/// An action or a service of the robot that is a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnTool {
    /// What it does, for models.
    pub about: String,
    /// The action, and its goal.
    pub action: Option<String>,
    /// The service, and its request.
    pub service: Option<String>,
    /// The goal, or the request; what is left out is zero.
    #[serde(default, alias = "request")]
    pub goal: serde_json::Map<String, Value>,
    /// What its result, or its answer, has to say.
    #[serde(default)]
    pub expect: serde_json::Map<String, Value>,
    /// `motion` unless the file says that it moves nothing.
    #[serde(default = "motion")]
    pub effect: Effect,
    /// How long it may take, in seconds.
    #[serde(default = "minute")]
    pub seconds: f64,
}

fn motion() -> Effect {
    Effect::Motion
}

fn minute() -> f64 {
    60.0
}

/// The vendor's own stop.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmergencyChannel {
    /// The service.
    pub service: String,
    /// The request that stops.
    #[serde(default)]
    pub on: serde_json::Map<String, Value>,
    /// The request that lifts the stop, where there is one.
    pub off: Option<serde_json::Map<String, Value>>,
}

impl RosBaseConfig {
    /// How the base is commanded.
    pub(super) fn velocity(&self) -> VelocityConfig {
        VelocityConfig {
            topic: self.velocity.topic.clone(),
            frame: self.velocity.frame.clone(),
            stamped: self.velocity.r#type.stamped(),
        }
    }

    /// Every action that may have a goal.
    pub(super) fn actions(&self) -> Vec<ActionChannel> {
        let channel = |name: &str, on, types: &[&'static str]| ActionChannel {
            name: name.to_owned(),
            on,
            types: types.to_vec(),
        };
        let own = self.tools.values().filter_map(|tool| tool.action.as_deref());
        let navigate = self.navigate.iter();
        let mut actions: Vec<ActionChannel> = navigate
            .map(|navigate| channel(&navigate.action, Subsystem::Base, &[NAVIGATE]))
            .chain(own.map(|name| channel(name, Subsystem::All, &[])))
            .collect();
        for (on, arm) in &self.arms {
            actions.push(channel(&arm.trajectory, *on, &[TRAJECTORY]));
            actions.extend(
                arm.gripper
                    .iter()
                    .map(|hand| channel(&hand.action, *on, &GRIPPERS)),
            );
        }
        actions.sort();
        actions.dedup();
        actions
    }

    /// Where joint states come from.
    pub(super) fn joints(&self) -> Option<&str> {
        let default = (!self.arms.is_empty()).then_some(JOINTS);
        self.joints.as_deref().or(default)
    }

    /// Every service that is called.
    pub(super) fn services(&self) -> Vec<String> {
        let own = self.tools.values().filter_map(|tool| tool.service.clone());
        let vendor = self.emergency.iter().map(|vendor| vendor.service.clone());
        let mut services: Vec<String> = own.chain(vendor).collect();
        services.sort();
        services.dedup();
        services
    }

    /// What serde cannot know.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let wrong = |what: String| Err(ModelError::parse("the channels", what));
        for (name, tool) in &self.tools {
            let key = format!("channels.tools.{name}");
            let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if name.is_empty() || name.len() > 48 || !name.bytes().all(legal) {
                return wrong(format!(
                    "{key}: expected a name of 1 to 48 small letters, digits and _"
                ));
            }
            if tool.action.is_some() == tool.service.is_some() {
                return wrong(format!(
                    "{key}: expected either `action` or `service`, such as action = \"/dock\""
                ));
            }
            if !matches!(tool.effect, Effect::Motion | Effect::Write | Effect::Read) {
                return wrong(format!("{key}.effect: expected motion, write or read"));
            }
            if tool.about.trim().is_empty() {
                return wrong(format!("{key}.about: expected a sentence that says what it does"));
            }
            if !(tool.seconds >= 1.0 && tool.seconds <= 600.0) {
                return wrong(format!("{key}.seconds: expected 1 to 600, got {}", tool.seconds));
            }
        }
        for (on, arm) in &self.arms {
            let key = format!("channels.arms.{on}");
            if !on.is_arm() {
                return wrong(format!("{key}: expected left_arm or right_arm"));
            }
            for (name, value, least, most, unit) in [
                ("path_tolerance", arm.path_tolerance, 0.1, 180.0, "degrees"),
                ("goal_tolerance", arm.goal_tolerance, 0.01, 10.0, "degrees"),
                ("late", arm.late, 0.0, 60.0, "s"),
            ] {
                if !(value >= least && value <= most) {
                    return wrong(format!(
                        "{key}.{name}: expected {least} to {most} {unit}, got {value}"
                    ));
                }
            }
            if let Some(hand) = &arm.gripper {
                let key = format!("{key}.gripper");
                if !((hand.open - hand.closed).abs() >= 1e-4 && hand.open.abs().max(hand.closed.abs()) < 10.0)
                {
                    return wrong(format!(
                        "{key}: expected different positions of {} as open and closed, in metres or radians",
                        hand.joint
                    ));
                }
                if let Some(force) = hand.force
                    && !(LEAST_FORCE..=10_000.0).contains(&force)
                {
                    return wrong(format!(
                        "{key}.force: expected {LEAST_FORCE} to 10000 N, got {force}; leave it out to let the controller choose (only \
                         with ParallelGripperCommand)"
                    ));
                }
            }
        }
        self.check_controllers()?;
        if let Some(scan) = &self.scan {
            for (key, value, most) in [
                ("keep_free", scan.keep_free, 5.0),
                ("half_width", scan.half_width, 2.0),
            ] {
                if !(value >= 0.0 && value <= most) {
                    return wrong(format!(
                        "channels.scan.{key}: expected 0 to {most} m, got {value}"
                    ));
                }
            }
        }
        if let Some(url) = &self.rosbridge
            && !url.starts_with("ws://")
        {
            return wrong(format!(
                "channels.rosbridge: {url:?}, expected an address such as ws://robot:9090"
            ));
        }
        Ok(())
    }
    /// Each arm and each hand has a controller of its own: one that has two would take each goal for both, and end one for the other.
    fn check_controllers(&self) -> Result<(), ModelError> {
        let arms = self.arms.iter();
        let each = arms.flat_map(|(on, arm)| {
            let key = format!("channels.arms.{on}");
            let hand = arm.gripper.iter();
            let hand = hand.map({
                let key = key.clone();
                move |hand| (format!("{key}.gripper.action"), hand.action.as_str())
            });
            std::iter::once((format!("{key}.trajectory"), arm.trajectory.as_str())).chain(hand)
        });
        let mut known: BTreeMap<&str, String> = BTreeMap::new();
        for (key, action) in each {
            if let Some(other) = known.insert(action.trim_matches('/'), key.clone()) {
                return Err(ModelError::parse(
                    "the channels",
                    format!(
                        "{key}: {action} is {other} as well; expected a controller of its own for each arm and each hand, because a \
                         shared controller drops the goal of one when the other gets a new one"
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// What is said of a hand whose action needs a force, and whose file has none.
pub(super) fn unforced(on: Subsystem, action: &str) -> String {
    format!(
        "channels.arms.{on}.gripper.force: missing: {action} is {}, and some controllers take a force of 0 as no force at all; give the \
         full force in newtons",
        GRIPPERS[0]
    )
}
