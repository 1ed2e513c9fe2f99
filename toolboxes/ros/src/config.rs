//! The section `ros`: how the graph is reached, and what may be moved in it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;
use ros_graph::shipped::Distribution;

use crate::name::full;

/// The section `ros`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The DDS domain, `ROS_DOMAIN_ID` on the robot: 0 to 232.
    #[schemars(range(max = 232))]
    pub domain: u16,
    /// The addresses of this machine on which the robot is reached; all when empty.
    #[schemars(with = "Vec<String>")]
    pub interfaces: Vec<IpAddr>,
    /// A rosbridge in place of DDS: `ws://robot:9090`.
    pub rosbridge: Option<String>,
    /// The distribution whose message definitions are used for types that the graph does not describe.
    pub distro: Distribution,
    /// Folders with definitions of further types, `PACKAGE/{msg,srv,action}/*` in each.
    pub types: Vec<PathBuf>,
    /// The graph is that of a simulator: nothing real moves in it.
    pub simulated: bool,
    /// What may be moved. Nothing that is not listed here is published, called or pursued.
    pub allow: Allow,
}

/// What may be moved, by name.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Allow {
    /// Topics that `ros_publish` may speak on, such as `{"/cmd_vel": {"linear": 0.2, "angular": 0.5}}`.
    pub publish: BTreeMap<String, PublishRule>,
    /// Services that `ros_call` may call, such as `["/motor_power"]`.
    pub call: Vec<String>,
    /// Actions that `ros_goal` may send goals to, such as `{"/navigate_to_pose": {"seconds": 300}}`.
    pub goal: BTreeMap<String, GoalRule>,
}

/// How a topic may be spoken on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PublishRule {
    /// The greatest linear velocity of each Twist in the message, in m/s.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub linear: f64,
    /// The greatest angular velocity of each Twist in the message, in rad/s.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub angular: f64,
    /// The longest time of one call, in seconds.
    #[schemars(range(min = 0.0, max = 600.0))]
    pub seconds: f64,
    /// The greatest amounts of other numbers, by field: `{"data": 1.5}`.
    pub limits: BTreeMap<String, f64>,
    /// The message published last, at the end of each call and in a stop: a message, or `"nothing"`. A message that has a Twist
    /// ends with zero where this is not given; for other types it must be given.
    pub end: Option<Value>,
}

impl Default for PublishRule {
    fn default() -> Self {
        Self {
            linear: 0.2,
            angular: 0.5,
            seconds: 5.0,
            limits: BTreeMap::new(),
            end: None,
        }
    }
}

/// How goals may be pursued.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GoalRule {
    /// The longest time of one goal, in seconds; it is cancelled then.
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub seconds: f64,
}

impl Default for GoalRule {
    fn default() -> Self {
        Self { seconds: 120.0 }
    }
}

impl Config {
    /// The same with absolute names, once names and limits are checked.
    ///
    /// # Errors
    /// A name is not one of ROS, two are the same, or a limit is out of its range.
    pub(crate) fn checked(mut self) -> Result<Self, ToolError> {
        let publish = std::mem::take(&mut self.allow.publish);
        for (name, rule) in publish {
            let numbers = [
                ("linear", rule.linear, Some(100.0)),
                ("angular", rule.angular, Some(100.0)),
                ("seconds", rule.seconds, Some(600.0)),
            ];
            let numbers = numbers
                .into_iter()
                .map(|(key, value, most)| (key.to_owned(), value, most));
            let limits = rule.limits.iter();
            for (key, value, most) in
                numbers.chain(limits.map(|(key, value)| (format!("limits.{key}"), *value, None)))
            {
                within(&format!("allow.publish.{name}.{key}"), value, most)?;
            }
            let full = allowed("publish", &name)?;
            once(
                "publish",
                &full,
                self.allow.publish.insert(full.clone(), rule).is_none(),
            )?;
        }
        for name in &mut self.allow.call {
            *name = allowed("call", name)?;
        }
        let goal = std::mem::take(&mut self.allow.goal);
        for (name, rule) in goal {
            within(&format!("allow.goal.{name}.seconds"), rule.seconds, Some(3600.0))?;
            let full = allowed("goal", &name)?;
            once(
                "goal",
                &full,
                self.allow.goal.insert(full.clone(), rule).is_none(),
            )?;
        }
        Ok(self)
    }
}

fn allowed(kind: &str, name: &str) -> Result<String, ToolError> {
    full(name).map_err(|error| ToolError::bad_args(format!("ros.allow.{kind}: {}", error.message())))
}

/// Refuses a second rule for a name, because the reader of the file cannot see which of two limits holds.
fn once(kind: &str, name: &str, is_first: bool) -> Result<(), ToolError> {
    is_first.then_some(()).ok_or_else(|| {
        let without = name.trim_start_matches('/');
        ToolError::bad_args(format!(
            "ros.allow.{kind} has {name} twice, as {without:?} and as {name:?}: keep one"
        ))
    })
}

fn within(key: &str, value: f64, most: Option<f64>) -> Result<(), ToolError> {
    if value >= 0.0 && value <= most.unwrap_or(f64::MAX) {
        return Ok(());
    }
    let expected = most.map_or_else(|| "0 or more".to_owned(), |most| format!("0 to {most}"));
    Err(ToolError::bad_args(format!(
        "ros.{key} is {value}, expected {expected}"
    )))
}
