//! What an adapter is told to do: a step of a plan, with the numbers that its words stand for.
//!
//! Owns the numbers of an action. Every name (a pose, a direction, a place, an emotion) has been looked up
//! and every number has been checked against the robot's limits before an adapter sees the action: adapters translate,
//! they do not decide. Units: degrees, millimetres for the lift, metres and m/s, rad/s, seconds. Read [`Action`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::spot::Spot;
use crate::step::Step;
use crate::subsystem::Subsystem;

/// One thing to do with one subsystem.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The part that moves or is asked; [`Subsystem::All`] for the whole robot.
    pub subsystem: Subsystem,
    /// What is done.
    pub step: Step,
    /// Where and how fast it moves, for a step whose words stand for numbers.
    pub motion: Option<Motion>,
    /// How long the action should take at the robot's speeds; the service ends the action after its timeout, which is
    /// longer.
    pub expected: Duration,
}

/// The numbers that a step's words stand for. Joint angles are in degrees, in the order of the subsystem's joints in
/// [`Capabilities`](crate::capability::Capabilities); a `speed` is the fraction 0.1 to 1.0 of each joint's largest
/// speed.
#[derive(Clone, Debug, PartialEq)]
pub enum Motion {
    /// The joints of an arm or the head go to angles. In a step that keeps the hand ([`Step::keeps_hand`]), a gripper that is
    /// one of the arm's joints stays as it is, and its angle here means nothing.
    Joints {
        /// One angle for each joint.
        positions: Vec<f64>,
        /// 0.1 to 1.0.
        speed: f64,
    },
    /// The joints go to one position after the other. Never empty. A robot that has the step's routine built in may do
    /// its own instead, within the action's `expected`.
    Frames(Vec<Keyframe>),
    /// The base moves at a constant velocity for a time and then stops. The velocity ends in every case.
    Drive {
        /// Within the base's limits.
        velocity: Velocity,
        /// How long the base moves.
        duration: Duration,
    },
    /// The base finds its own way to a spot in the frame of its fix, and stands there. Its progress says how much of the way is
    /// done. Only for a robot with [`Services::navigates`](crate::capability::Services::navigates).
    GoTo(Spot),
    /// The lift moves.
    Lift(LiftTarget),
}

/// How fast the base moves, seen from the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Velocity {
    /// Forwards, m/s.
    pub x: f64,
    /// To the left, m/s.
    pub y: f64,
    /// Counterclockwise, rad/s.
    pub turn: f64,
}

/// Where the lift goes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiftTarget {
    /// So many millimetres up (negative: down) from where it is, ending at its limits.
    By(f64),
    /// This height in millimetres.
    To(f64),
}

/// One position on the way of a routine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Keyframe {
    /// Where each joint goes, in degrees.
    pub positions: Vec<f64>,
    /// 0.1 to 1.0.
    pub speed: f64,
    /// How long the joints stay there, in seconds.
    #[serde(default)]
    pub hold: f64,
}
