//! A straight way, and how far beyond its end the vehicle may come to rest.
//!
//! A stop may come at any instant, also just before the target while the vehicle is still fast, and braking takes metres.
//! The guards judge a way with that room at its end, so that no stop carries the vehicle over a line. Read [`Leg::rests`].

use super::Braking;
use super::braking::reached;
use crate::geo::Ned;

/// How fast it goes, metres per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    pub(crate) flat: f64,
    pub(crate) up: f64,
    pub(crate) down: f64,
}

impl Pace {
    /// PX4's own flights, by its defaults: `MPC_XY_CRUISE`, `MPC_Z_V_AUTO_UP`, `MPC_Z_V_AUTO_DN`.
    pub(crate) const PX4: Self = Self {
        flat: 5.0,
        up: 3.0,
        down: 1.5,
    };
    /// PX4's take-off: `MPC_TKO_SPEED`.
    pub(crate) const TAKEOFF: Self = Self { up: 1.5, ..Self::PX4 };

    /// The same in every direction: set points of our own.
    pub(crate) fn even(mps: f64) -> Self {
        Self {
            flat: mps,
            up: mps,
            down: mps,
        }
    }

    /// Metres to leave between the highest target of a climb and a ceiling.
    pub(crate) fn below_ceiling(self, braking: Braking) -> f64 {
        braking.beyond_target(self.up)
    }

    /// Metres to leave between the lowest target of a descent and a floor.
    pub(crate) fn above_floor(self, braking: Braking) -> f64 {
        braking.beyond_target(self.down)
    }
}

/// A straight way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leg {
    pub(crate) from: Ned,
    pub(crate) to: Ned,
    pace: Pace,
    /// Metres per second at its beginning.
    velocity: Ned,
    /// Metres over which it may have gathered speed before: horizontally, and up or down.
    run_up: [f64; 2],
}

impl Leg {
    /// A way that begins at rest.
    pub(crate) fn new(from: Ned, to: Ned, pace: Pace) -> Self {
        Self {
            from,
            to,
            pace,
            velocity: [0.0; 3],
            run_up: [0.0; 2],
        }
    }

    /// A way that begins with this velocity, metres per second.
    pub(crate) fn moving(self, velocity: Ned) -> Self {
        Self { velocity, ..self }
    }

    /// A way that begins after so many metres of others, which the vehicle flies through.
    pub(crate) fn after(self, flat_m: f64, climb_m: f64) -> Self {
        Self {
            run_up: [flat_m, climb_m],
            ..self
        }
    }

    /// The place farthest along where a stop may leave the vehicle.
    pub(crate) fn rests(&self, braking: Braking) -> Ned {
        let way: Ned = std::array::from_fn(|axis| self.to[axis] - self.from[axis]);
        let mut rests = self.to;
        let flat = way[0].hypot(way[1]);
        if flat > 0.0 {
            let towards = [way[0] / flat, way[1] / flat];
            let already = self.velocity[0] * towards[0] + self.velocity[1] * towards[1];
            let past = past(braking, self.pace.flat, flat, self.run_up[0], already);
            rests[0] += towards[0] * past;
            rests[1] += towards[1] * past;
        }
        if way[2] != 0.0 {
            let sign = way[2].signum();
            let pace = if sign > 0.0 { self.pace.down } else { self.pace.up };
            rests[2] += sign
                * past(
                    braking,
                    pace,
                    way[2].abs(),
                    self.run_up[1],
                    self.velocity[2] * sign,
                );
        }
        rests
    }
}

/// Metres beyond the end of `length` metres at `pace`, after `run_up` metres and begun at the speed `already`.
fn past(braking: Braking, pace: f64, length: f64, run_up: f64, already: f64) -> f64 {
    let already = already.max(0.0);
    let fastest = pace.min(reached(length + run_up)).max(already);
    braking
        .beyond_target(fastest)
        .max(braking.guarded(already) - length)
}
