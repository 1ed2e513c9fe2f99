//! What the vehicle does within its mode, and the setpoints and landed states that this depends on.

use serde::Serialize;

use super::motion::Speeds;
use crate::geo::Ned;

/// MAVLink's landed state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Landed {
    /// On the ground.
    OnGround,
    /// Flying.
    InAir,
    /// Climbing to the take-off altitude.
    TakingOff,
    /// Descending in land mode.
    Landing,
}

/// A setpoint of offboard mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Setpoint {
    /// A position in metres north, east, down of home, with a heading in radians.
    Position {
        /// The position.
        place: Ned,
        /// Feed-forward velocity, metres per second.
        velocity: Option<Ned>,
        /// Heading in radians.
        yaw: Option<f64>,
    },
    /// A velocity in metres per second north, east, down.
    Velocity {
        /// The velocity.
        velocity: Ned,
        /// Heading in radians.
        yaw: Option<f64>,
        /// Turn rate in radians per second, without a heading.
        yaw_rate: f64,
    },
    /// A velocity in metres per second forward, right, down.
    BodyVelocity {
        /// The velocity.
        velocity: Ned,
        /// Turn rate in radians per second.
        yaw_rate: f64,
    },
}

/// The vehicle's present action within its mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plan {
    /// Motors idle on the ground.
    Idle,
    /// Come to rest and stay.
    Brake { lag: f64 },
    /// Hold this position and heading.
    Stay { place: Ned, yaw: f64 },
    /// Fly to a position and stay.
    GoTo {
        place: Ned,
        /// `None` keeps the heading.
        yaw: Option<f64>,
        speeds: Speeds,
    },
    /// Climb to this height (down coordinate).
    Takeoff { place: Ned, since: f64 },
    /// Descend until the ground.
    Descend { place: Ned },
    /// Climb, fly home and descend.
    Return { climb_to: f64, climbed: bool },
    /// Fly the mission.
    Mission,
    /// Follow the last setpoint.
    Offboard,
    /// Motors off in the air.
    Fall,
}
