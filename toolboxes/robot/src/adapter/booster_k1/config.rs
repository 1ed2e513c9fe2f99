//! The channels of a K1, and the parts that follow from them.

use ros_graph::velocity::VelocityConfig;
use serde::Deserialize;

use crate::adapter::{ActionError, Estop};
use crate::ros::RosConfig;

const TWIST: &str = "geometry_msgs/Twist";
/// The type of a velocity that says when it was said.
pub(super) const TWIST_STAMPED: &str = "geometry_msgs/TwistStamped";

/// The channels of a K1.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoosterK1Config {
    /// How the robot is spoken to.
    pub profile: Profile,
    /// Domain, interfaces, distribution.
    pub ros: RosConfig,
    /// For `topics`: their names.
    pub topics: Topics,
    /// For `topics`: the type of a velocity, where others read the topic under both.
    pub velocity_type: VelocityType,
    /// For `booster_rpc`: the robot has grippers, which the K1 has not by default.
    pub gripper: bool,
    /// For `booster_rpc`: how long an answer may take, in milliseconds.
    pub answer_ms: u64,
}

impl Default for BoosterK1Config {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            ros: RosConfig::default(),
            topics: Topics::default(),
            velocity_type: VelocityType::default(),
            gripper: false,
            answer_ms: 1000,
        }
    }
}

impl BoosterK1Config {
    /// How its base is commanded over topics.
    pub(super) fn velocity(&self) -> VelocityConfig {
        VelocityConfig {
            topic: self.topics.velocity.clone(),
            stamped: self.velocity_type.stamped(),
            ..VelocityConfig::default()
        }
    }
}

/// The type of a velocity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VelocityType {
    /// The one that the robot reads.
    #[default]
    Auto,
    /// geometry_msgs/Twist.
    Twist,
    /// geometry_msgs/TwistStamped, as newer versions of Nav2 and TurtleBot use it.
    TwistStamped,
}

impl VelocityType {
    /// Whether velocities are stamped; `None` where the graph says it.
    pub(in crate::adapter) fn stamped(self) -> Option<bool> {
        match self {
            Self::Auto => None,
            Self::Twist => Some(false),
            Self::TwistStamped => Some(true),
        }
    }

    /// The types that are spoken.
    pub(super) fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Auto => &[TWIST, TWIST_STAMPED],
            Self::Twist => &[TWIST],
            Self::TwistStamped => &[TWIST_STAMPED],
        }
    }
}

/// How a K1 is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Four ROS 2 topics, for a bridge on the robot.
    #[default]
    Topics,
    /// The robot's own RPC over DDS.
    BoosterRpc,
}

/// The ROS 2 topics of the profile `topics`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Topics {
    /// geometry_msgs/Twist or geometry_msgs/TwistStamped, as the robot reads it.
    pub velocity: String,
    /// std_msgs/Float64MultiArray: pan and tilt in degrees.
    pub head: String,
    /// std_msgs/Float64MultiArray: the joints of an arm in degrees; the label of the first dimension is its name.
    pub arm: String,
    /// sensor_msgs/JointState, from the robot.
    pub joints: String,
}

impl Default for Topics {
    fn default() -> Self {
        Self {
            velocity: "/cmd_vel".to_owned(),
            head: "/head/pan_tilt".to_owned(),
            arm: "/arm/joint_positions".to_owned(),
            joints: "/joint_states".to_owned(),
        }
    }
}

/// What an emergency stop does: by default the robot stands, because one without power falls.
pub(super) fn estop(
    robot: &str,
    config: &BoosterK1Config,
    estop: Option<Estop>,
) -> Result<Estop, ActionError> {
    match (estop.unwrap_or(Estop::Hold), config.profile) {
        (Estop::Damp | Estop::TorqueOff, Profile::Topics) => Err(ActionError::NotSupported {
            robot: robot.to_owned(),
            what: "estop other than hold: no topic of the profile topics can".to_owned(),
        }),
        (Estop::TorqueOff, Profile::BoosterRpc) => Err(ActionError::NotSupported {
            robot: robot.to_owned(),
            what: "estop torque_off: the K1 can hold or damp".to_owned(),
        }),
        (estop, _) => Ok(estop),
    }
}
