//! A straight leg, and how far beyond its end the vehicle may come to rest.
//!
//! A stop can come at any instant, including just before the target while the vehicle is still fast. The guards judge a
//! leg together with the stopping distance at its end, so that no stop carries the vehicle over a limit. Read
//! [`Leg::rests`].

use super::braking::{Braking, reached, reaches};
use super::facts::Pose;
use crate::geo::Ned;

/// Speeds in metres per second: horizontal, up and down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    pub(crate) flat: f64,
    pub(crate) up: f64,
    pub(crate) down: f64,
}

impl Pace {
    /// The default speeds of PX4's own flights: `MPC_XY_CRUISE`, `MPC_Z_V_AUTO_UP`, `MPC_Z_V_AUTO_DN`.
    pub(crate) const PX4: Self = Self {
        flat: 5.0,
        up: 3.0,
        down: 1.5,
    };
    /// The default speed of PX4's take-off: `MPC_TKO_SPEED`.
    pub(crate) const TAKEOFF: Self = Self { up: 1.5, ..Self::PX4 };

    /// The same speed in every direction, for the toolbox's own setpoints.
    pub(crate) fn even(mps: f64) -> Self {
        Self {
            flat: mps,
            up: mps,
            down: mps,
        }
    }

    /// Metres to keep between the highest target of a climb and the ceiling.
    pub(crate) fn below_ceiling(self, braking: Braking) -> f64 {
        braking.beyond_target(self.up)
    }

    /// Metres to keep between the lowest target of a descent and the floor.
    pub(crate) fn above_floor(self, braking: Braking) -> f64 {
        braking.beyond_target(self.down)
    }
}

/// A straight leg.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leg {
    pub(crate) from: Ned,
    pub(crate) to: Ned,
    pace: Pace,
    /// Velocity at its start, metres per second.
    velocity: Ned,
    /// Acceleration at its start, metres per second squared.
    acceleration: Ned,
    /// Metres flown before it without a stop, over which speed may build up: horizontal and vertical.
    run_up: [f64; 2],
    /// Whether the vehicle may fly through its end without slowing down.
    through: bool,
}

impl Leg {
    /// A leg that starts at rest.
    pub(crate) fn new(from: Ned, to: Ned, pace: Pace) -> Self {
        Self {
            from,
            to,
            pace,
            velocity: [0.0; 3],
            acceleration: [0.0; 3],
            run_up: [0.0; 2],
            through: false,
        }
    }

    /// Sets the velocity and the acceleration at its start to those of the vehicle.
    pub(crate) fn moving(self, pose: &Pose) -> Self {
        Self {
            velocity: pose.velocity,
            acceleration: pose.acceleration,
            ..self
        }
    }

    /// Sets the metres of earlier legs that the vehicle flies through without a stop.
    pub(crate) fn after(self, flat_m: f64, climb_m: f64) -> Self {
        Self {
            run_up: [flat_m, climb_m],
            ..self
        }
    }

    /// Sets that the vehicle may fly through the end at its full speed, towards a next leg that does not lead back.
    pub(crate) fn through(self) -> Self {
        Self {
            through: true,
            ..self
        }
    }

    /// Horizontal metres beyond the end of the leg to which the vehicle's motion at its start may carry it, even if it is
    /// stopped at once.
    pub(crate) fn overruns(&self, braking: Braking) -> f64 {
        let way = [self.to[0] - self.from[0], self.to[1] - self.from[1]];
        let length = way[0].hypot(way[1]).max(0.01);
        let along = |vector: Ned| (vector[0] * way[0] + vector[1] * way[1]) / length;
        let already = reaches_at_start(along(self.velocity), along(self.acceleration));
        (braking.guarded(already) - length).max(0.0)
    }

    /// The farthest place at which a stop on this leg may leave the vehicle.
    pub(crate) fn rests(&self, braking: Braking) -> Ned {
        let way: Ned = std::array::from_fn(|axis| self.to[axis] - self.from[axis]);
        let mut rests = self.to;
        let flat = way[0].hypot(way[1]);
        if flat > 0.0 {
            let towards = [way[0] / flat, way[1] / flat];
            let along = |vector: Ned| vector[0] * towards[0] + vector[1] * towards[1];
            let already = reaches_at_start(along(self.velocity), along(self.acceleration));
            let mut past = past(braking, self.pace.flat, flat, self.run_up[0], already);
            if self.through {
                let fastest = self.pace.flat.min(reached(flat + self.run_up[0]));
                past = past.max(braking.guarded(fastest));
            }
            rests[0] += towards[0] * past;
            rests[1] += towards[1] * past;
        }
        if way[2] != 0.0 {
            let sign = way[2].signum();
            let pace = if sign > 0.0 { self.pace.down } else { self.pace.up };
            let already = reaches_at_start(self.velocity[2] * sign, self.acceleration[2] * sign);
            rests[2] += sign * past(braking, pace, way[2].abs(), self.run_up[1], already);
        }
        rests
    }
}

/// The speed that the vehicle may reach along a leg although it is stopped at its start, metres per second. The set speed
/// of the flight before is not known; its acceleration bounds the speed enough.
fn reaches_at_start(mps: f64, mps2: f64) -> f64 {
    reaches(mps.max(0.0), f64::INFINITY, Some(mps2))
}

/// The distance in metres beyond the end of a leg at which a stop may leave the vehicle. The leg has `length` metres at
/// `pace`; `run_up` metres were flown before it, and the vehicle may reach the speed `already` even if it is stopped at its
/// start. On the leg it reaches `pace` or what the leg's length allows, and a stop while it accelerates lets it become
/// that fast, too: PX4 has planned that speed already.
fn past(braking: Braking, pace: f64, length: f64, run_up: f64, already: f64) -> f64 {
    let fastest = pace.min(reached(length + run_up)).max(already);
    braking
        .beyond_target(fastest)
        .max(braking.guarded(already) - length)
}
