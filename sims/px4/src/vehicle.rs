//! The vehicle: a point-mass quadrotor with PX4's modes, arming rules and failsafes, on virtual time.
//!
//! Pure: no clock, no sockets, and randomness only from its seed. Commands set the goal, [`Vehicle::step`] advances
//! time. [`crate::link`] is the MAVLink interface. Read [`Vehicle`] first, then `commander` (what is allowed), `checks`
//! (arming checks) and `navigator` (where to fly).

pub mod checks;
mod commander;
mod excursions;
mod health;
mod motion;
mod navigator;
mod noise;
mod notice;
mod payload;
mod photos;
mod plan;
mod state;

pub use excursions::Excursions;
pub use health::Health;
pub use motion::Body;
pub use notice::{Notice, severity};
pub use payload::{Payload, Photo};
pub use plan::{Landed, Setpoint};
pub use state::Vehicle;

use crate::{
    geo::{Ned, difference, length},
    log::What,
    mode::Mode,
    quirks::Quirk,
};

/// How long PX4 corrects its home altitude after a take-off, seconds.
const HOME_MOVES_S: f64 = 120.0;

impl Vehicle {
    /// Advances time by `dt` seconds; steps of at most 0.02 s keep the loops stable.
    pub fn step(&mut self, dt: f64) {
        self.time += dt;
        let before = self.body.position;
        self.supervise();
        self.fly(dt);
        self.notice_ground();
        self.settle_home();
        if self.armed {
            let load = 1.0 + length(self.body.velocity) * 0.02;
            let share = if self.landed == Landed::OnGround {
                0.1
            } else {
                load
            };
            self.battery_pct = (self.battery_pct - self.drain * share * dt).max(0.0);
        }
        self.record(before);
    }

    /// Updates the home altitude.
    fn settle_home(&mut self) {
        if !self.armed {
            self.home_amsl = self.believed_amsl();
        }
        if self.landed == Landed::OnGround {
            self.took_off = None;
            return;
        }
        let since = self.time - *self.took_off.get_or_insert(self.time);
        if since < HOME_MOVES_S && self.has(Quirk::HomeMovesInFlight) {
            self.home_amsl = self.home.alt - self.ground_drift() + self.noise.home(self.time);
        }
    }

    fn record(&mut self, before: Ned) {
        let at = self.body.position;
        let speed = length(self.body.velocity);
        let depth = self.fence.depth(at[0], at[1]);
        let clearance = self.world.clearance(at);
        let seen = &mut self.excursions;
        seen.radius_m = seen.radius_m.max(at[0].hypot(at[1]));
        seen.up_m = seen.up_m.max(-at[2]);
        let flown = self.armed && matches!(self.mode, Mode::Offboard | Mode::Hold | Mode::Mission);
        self.high = flown && (self.high || -at[2] > 1.0);
        if self.high {
            seen.lowest_m = Some(seen.lowest_m.unwrap_or(f64::INFINITY).min(-at[2]));
        }
        seen.speed = seen.speed.max(speed);
        seen.path_m += length(difference(at, before));
        if depth.is_finite() {
            seen.fence_depth_m = Some(seen.fence_depth_m.unwrap_or(f64::INFINITY).min(depth));
        }
        if clearance.is_finite() {
            seen.clearance_m = Some(seen.clearance_m.unwrap_or(f64::INFINITY).min(clearance));
        }
        let colliding = clearance <= 0.0;
        if colliding && !self.colliding {
            self.log.push(self.time, What::Collision { position: at });
        }
        self.colliding = colliding;
    }
}
