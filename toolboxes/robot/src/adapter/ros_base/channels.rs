//! The channels of a base in a graph of ROS, as its file gives them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ovos_toolbox_sdk::wire::Effect;
use ros_graph::shipped::Distribution;
use ros_graph::velocity::VelocityConfig;
use serde::Deserialize;
use serde_json::Value;

use crate::adapter::booster_k1::VelocityType;
use crate::model::ModelError;
use crate::ros::{Distro, RosConfig};

/// The channels of a base.
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
    /// sensor_msgs/JointState.
    pub joints: Option<String>,
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
            stamped: match self.velocity.r#type {
                VelocityType::Auto => None,
                VelocityType::Twist => Some(false),
                VelocityType::TwistStamped => Some(true),
            },
        }
    }

    pub(super) fn distribution(&self) -> Distribution {
        match self.ros.distro {
            Distro::Humble => Distribution::Humble,
            Distro::Jazzy => Distribution::Jazzy,
            Distro::Kilted => Distribution::Kilted,
        }
    }

    /// Every action that may have a goal.
    pub(super) fn actions(&self) -> Vec<String> {
        let own = self.tools.values().filter_map(|tool| tool.action.clone());
        let navigate = self.navigate.iter().map(|channel| channel.action.clone());
        let mut actions: Vec<String> = navigate.chain(own).collect();
        actions.sort();
        actions.dedup();
        actions
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
}

/// How long a goal is given to end after its cancel.
pub(super) const GOAL_ENDS: Duration = Duration::from_millis(500);
