//! What a robot has and can do.
//!
//! Owns the description that the tool list, the graphs and the limits are made from. Plain data, read once after
//! the adapter has been made. Read [`Capabilities`].

use std::collections::BTreeMap;

use ovos_toolbox_sdk::wire::Effect;
use serde::{Deserialize, Serialize};

pub use crate::bus_name::BusName;
use crate::camera::CameraTable;
use crate::policy::PolicyTable;
use crate::shape::GeometryTable;
use crate::subsystem::Subsystem;

/// A point with a velocity of zero is reached along a cubic, whose fastest is half as fast again as its mean.
const EASED: f64 = 1.5;

/// A robot's parts, limits and abilities. A part that is `None` or empty is missing, and tools that need it are not
/// listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// The kind of robot, such as `johnny5`.
    pub model: String,
    /// The robot is simulated. Every result says so.
    #[serde(default)]
    pub simulated: bool,
    /// The left arm.
    #[serde(default)]
    pub left_arm: Option<Arm>,
    /// The right arm.
    #[serde(default)]
    pub right_arm: Option<Arm>,
    /// The head: pan first, then tilt.
    #[serde(default)]
    pub gantry: Option<Vec<Joint>>,
    /// The lift.
    #[serde(default)]
    pub lift: Option<Lift>,
    /// The hitch.
    #[serde(default)]
    pub hitch: Option<Hitch>,
    /// Wheels or legs.
    #[serde(default)]
    pub base: Option<Base>,
    /// The servo buses, each with every motor on it.
    #[serde(default)]
    pub buses: Vec<Bus>,
    /// What it can do besides moving.
    #[serde(default)]
    pub services: Services,
    /// How the robot performs some of our routines in its own way.
    #[serde(default)]
    pub own: Own,
    /// Its cameras.
    #[serde(default)]
    pub cameras: BTreeMap<String, CameraTable>,
    /// The programs that may have it for a time.
    #[serde(default)]
    pub policies: BTreeMap<String, PolicyTable>,
}

/// How a robot's own waves, gestures and dances differ from our routines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Own {
    /// The arm that its wave moves, where the caller cannot choose it.
    pub wave: Option<Subsystem>,
    /// How long one of its own routines may take, in seconds.
    pub seconds: f64,
    /// A dance moves the whole robot, including the base.
    pub dance_moves_base: bool,
}

/// A rotating joint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// For messages.
    pub name: String,
    /// Degrees.
    pub min: f64,
    /// Degrees.
    pub max: f64,
    /// Degrees per second at speed 1.0.
    pub max_speed: f64,
}

/// An arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// From the shoulder outwards.
    pub joints: Vec<Joint>,
    /// The gripper, where the arm has one.
    #[serde(default)]
    pub gripper: Option<Gripper>,
    /// Its shape, where it can be sent to points.
    #[serde(default)]
    pub geometry: Option<GeometryTable>,
}

/// A gripper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gripper {
    /// Which of the arm's joints it is, counted from 0; `None` where it is not one of them.
    #[serde(default)]
    pub joint: Option<usize>,
    /// Degrees of that joint, or percent.
    pub open: f64,
    /// Degrees of that joint, or percent.
    pub closed: f64,
    /// Degrees, or percent, per second.
    pub max_speed: f64,
}

/// A vertical lift.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lift {
    /// Millimetres.
    pub min: f64,
    /// Millimetres.
    pub max: f64,
    /// Millimetres.
    pub home: f64,
    /// Millimetres per second.
    pub max_speed: f64,
}

/// A hitch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hitch {
    /// Degrees.
    pub open: f64,
    /// Degrees.
    pub closed: f64,
    /// Degrees per second.
    pub max_speed: f64,
}

/// Wheels or legs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Such as `3-wheel omni` or `bipedal`.
    pub kind: String,
    /// Forwards and backwards, m/s: the largest that is ever commanded.
    pub max_linear: f64,
    /// Sideways, m/s; 0 if the base cannot go sideways.
    pub max_lateral: f64,
    /// Turning, rad/s.
    pub max_angular: f64,
    /// What `walk` and `move_base` take when no speed is given, m/s.
    pub usual_linear: f64,
    /// How far the base may go from where it was when the toolbox was opened, in metres, if the configuration sets a
    /// limit.
    #[serde(default)]
    pub radius: Option<f64>,
}

/// A serial bus with servos.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// The name in arguments.
    pub name: BusName,
    /// The device, such as /dev/ttyACM0.
    pub port: String,
    /// The motors on it.
    pub motors: Vec<Motor>,
}

/// A servo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Motor {
    /// 1 to 253.
    pub id: u8,
    /// What it moves.
    pub subsystem: Subsystem,
    /// The motor's name; the motor of a joint has the joint's name.
    pub name: String,
    /// The joint's position in the middle of the servo's turn; the middle of the joint's range if this is not given.
    #[serde(default)]
    pub middle: Option<f64>,
    /// Of a wheel: where it stands, in degrees counterclockwise from straight ahead.
    #[serde(default)]
    pub bearing: Option<f64>,
}

/// What a robot can do besides moving.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Services {
    /// `motor_status` and `servo_health_report`.
    pub motor_status: bool,
    /// `check_torque` and `enable_torque`.
    pub torque: bool,
    /// The parts that have a `calibrate_*` tool.
    pub calibrate: Vec<Subsystem>,
    /// Calibration may write into the motors.
    pub calibration_write: bool,
    /// The parts that `set_home_position` takes.
    pub set_home: Vec<Subsystem>,
    /// The parts that `self_test` takes.
    pub self_test: Vec<Subsystem>,
    /// `save_config` and `load_config`.
    pub config: bool,
    /// The robot can tell whether it charges.
    pub charge: bool,
    /// The base knows where it is: its adapter answers `fix`.
    pub position: bool,
    /// The base finds its own way to a spot: its adapter takes `Motion::GoTo`.
    pub navigates: bool,
    /// `run_policy`: it can be given to another program and taken back.
    pub lends: bool,
    /// Its arms follow trajectories of a controller, which ease in and out of each movement.
    pub trajectories: bool,
    /// `battery_status`.
    pub battery: bool,
    /// `way_ahead`.
    pub way_ahead: bool,
    /// The robot's own actions and services that are tools.
    pub own: Vec<OwnTool>,
}

/// An action or a service of the robot that is a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnTool {
    /// The tool's name.
    pub name: String,
    /// What it does.
    pub about: String,
    /// What it changes.
    pub effect: Effect,
    /// How long it may take, in seconds.
    pub seconds: f64,
}

impl Capabilities {
    /// The arm, where there is one.
    #[must_use]
    pub fn arm(&self, subsystem: Subsystem) -> Option<&Arm> {
        match subsystem {
            Subsystem::LeftArm => self.left_arm.as_ref(),
            Subsystem::RightArm => self.right_arm.as_ref(),
            _ => None,
        }
    }

    /// Whether the arm can be sent to points.
    #[must_use]
    pub fn reaches(&self, arm: Subsystem) -> bool {
        self.arm(arm).is_some_and(|arm| arm.geometry.is_some())
    }

    /// Limits the grippers to the range of their joints.
    pub(crate) fn fit_grippers(&mut self) {
        for arm in [&mut self.left_arm, &mut self.right_arm].into_iter().flatten() {
            let Some(gripper) = &mut arm.gripper else { continue };
            if let Some(joint) = gripper.joint.and_then(|joint| arm.joints.get(joint)) {
                gripper.open = gripper.open.max(joint.min).min(joint.max);
                gripper.closed = gripper.closed.max(joint.min).min(joint.max);
            }
        }
    }

    /// The joints of an arm or the gantry.
    #[must_use]
    pub fn joints(&self, subsystem: Subsystem) -> Option<&[Joint]> {
        match subsystem {
            Subsystem::Gantry => self.gantry.as_deref(),
            arm => self.arm(arm).map(|arm| arm.joints.as_slice()),
        }
    }

    /// The joints of an arm or the gantry with the speed that they have on average in a movement at full speed.
    #[must_use]
    pub fn paced_joints(&self, subsystem: Subsystem) -> Option<Vec<Joint>> {
        let eased = if self.services.trajectories && subsystem.is_arm() {
            EASED
        } else {
            1.0
        };
        let paced = |joint: &Joint| Joint {
            max_speed: joint.max_speed / eased,
            ..joint.clone()
        };
        Some(self.joints(subsystem)?.iter().map(paced).collect())
    }

    pub(crate) fn joints_mut(&mut self, subsystem: Subsystem) -> Option<&mut [Joint]> {
        let arm = match subsystem {
            Subsystem::Gantry => return self.gantry.as_deref_mut(),
            Subsystem::LeftArm => &mut self.left_arm,
            Subsystem::RightArm => &mut self.right_arm,
            _ => return None,
        };
        arm.as_mut().map(|arm| arm.joints.as_mut_slice())
    }

    /// Positions by joint, to a tenth of a degree, as `state` reports them. For [`Subsystem::All`] the subsystem's name
    /// stands before the joint's name.
    pub(crate) fn named_positions(
        &self,
        subsystem: Subsystem,
        measured: impl Fn(Subsystem) -> Option<Vec<f64>>,
    ) -> serde_json::Map<String, serde_json::Value> {
        let mut positions = serde_json::Map::new();
        for one in subsystem.each() {
            if let (Some(found), Some(joints)) = (measured(one), self.joints(one)) {
                for (joint, position) in joints.iter().zip(found) {
                    let name = match subsystem {
                        Subsystem::All => format!("{one}.{}", joint.name),
                        _ => joint.name.clone(),
                    };
                    positions.insert(name, ((position * 10.0).round() / 10.0).into());
                }
            }
        }
        positions
    }

    /// Whether the robot has the subsystem. [`Subsystem::All`] is always there.
    #[must_use]
    pub fn has(&self, subsystem: Subsystem) -> bool {
        match subsystem {
            Subsystem::LeftArm => self.left_arm.is_some(),
            Subsystem::RightArm => self.right_arm.is_some(),
            Subsystem::Base => self.base.is_some(),
            Subsystem::Lift => self.lift.is_some(),
            Subsystem::Gantry => self.gantry.is_some(),
            Subsystem::Hitch => self.hitch.is_some(),
            Subsystem::All => true,
        }
    }

    /// The subsystems there are.
    #[must_use]
    pub fn subsystems(&self) -> Vec<Subsystem> {
        Subsystem::EACH.into_iter().filter(|one| self.has(*one)).collect()
    }

    /// Whether the robot's wave can move this arm.
    #[must_use]
    pub fn waves(&self, arm: Subsystem) -> bool {
        self.own.wave.is_none_or(|only| only == arm)
    }

    /// The bus of a name.
    #[must_use]
    pub fn bus(&self, name: BusName) -> Option<&Bus> {
        self.buses.iter().find(|bus| bus.name == name)
    }
}

impl Bus {
    /// Every part with a motor on this bus, once. A tool that uses the whole bus holds all of them.
    #[must_use]
    pub fn subsystems(&self) -> Vec<Subsystem> {
        let mut found = Vec::new();
        for motor in &self.motors {
            if !found.contains(&motor.subsystem) {
                found.push(motor.subsystem);
            }
        }
        found
    }
}
