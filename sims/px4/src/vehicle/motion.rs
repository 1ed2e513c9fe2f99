//! A point with a heading that follows velocities with a lag.
//!
//! Knows no modes and no rules. Start with [`Body::follow`].

use crate::geo::{Ned, wrap};

/// Lag of following a velocity setpoint, seconds: 2.5 m/s stop within 4.1 m, as measured.
pub(super) const VELOCITY_LAG: f64 = 1.64;
/// Lag of braking in hold, seconds: 2.5 m/s stop within 2.9 m, as measured.
pub(super) const BRAKE_LAG: f64 = 1.16;
/// Lag of the velocity loop below the position loop, seconds: a 3 m step takes a little over 3 s, as measured.
pub(super) const POSITION_LAG: f64 = 0.45;
/// Lag of a vehicle without `sluggish_velocity`, seconds.
pub(super) const NO_LAG: f64 = 0.05;
/// Reaction time before it brakes, seconds, and deceleration, metres per second squared: with the lag above 6.4 m from
/// 4 m/s, 2.9 m from 2.5 m/s, 0.7 m from 0.95 m/s, as measured.
pub(super) const REACTION_S: f64 = 0.35;
pub(super) const BRAKING: f64 = 1.65;
/// Greatest acceleration, metres per second squared.
pub(super) const ACCELERATION: f64 = 6.0;
/// Greatest horizontal acceleration of PX4's own flights (`MPC_ACC_HOR`), metres per second squared.
pub(super) const AUTO_ACCELERATION: f64 = 3.0;
/// Jerk with which they end an acceleration (`MPC_JERK_AUTO`), metres per second cubed.
const AUTO_JERK: f64 = 4.0;
/// By how much the velocity setpoint of an accelerating vehicle runs ahead of it, seconds.
const SETPOINT_AHEAD_S: f64 = 0.35;
/// How long it reacts longer to a stop for each metre per second squared, seconds: fitted to the recorded stops.
pub(super) const SURGE_S: f64 = 0.15;
/// Gain of the position loop, per second (`MPC_XY_P`).
const POSITION_GAIN: f64 = 0.95;
/// Gain of the heading loop, per second: a quarter turn takes about a second, as measured.
const YAW_GAIN: f64 = 4.0;
const GRAVITY: f64 = 9.81;

/// Speed limits of a flight to a position, metres per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speeds {
    /// Horizontal.
    pub cruise: f64,
    /// Climbing.
    pub up: f64,
    /// Descending.
    pub down: f64,
}

/// The greatest speed from which a vehicle stops within this distance.
pub(super) fn stops_within(metres: f64) -> f64 {
    let lag = REACTION_S + POSITION_LAG / 2.0;
    BRAKING * ((lag * lag + 2.0 * metres / BRAKING).sqrt() - lag)
}

/// By how much a vehicle that accelerates becomes faster after it was told to stop, metres per second.
pub(super) fn surge(acceleration: f64) -> f64 {
    acceleration * SETPOINT_AHEAD_S + acceleration * acceleration / (2.0 * AUTO_JERK)
}

/// The highest speed on a flight of this length from rest to rest, metres per second.
pub(super) fn peak(metres: f64) -> f64 {
    (AUTO_JERK * (metres / 2.0).powi(2)).cbrt()
}

/// A velocity command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Want {
    /// North, east, down in metres per second.
    pub velocity: Ned,
    /// Lag in seconds.
    pub lag: f64,
    /// Turn rate in radians per second, clockwise seen from above.
    pub yaw_rate: f64,
    /// Greatest horizontal deceleration, metres per second squared.
    pub braking: f64,
    /// Greatest horizontal acceleration, metres per second squared.
    pub accelerating: f64,
}

impl Want {
    /// The command to stand still.
    #[must_use]
    pub fn rest(lag: f64) -> Self {
        Self {
            velocity: [0.0; 3],
            lag,
            yaw_rate: 0.0,
            braking: ACCELERATION,
            accelerating: ACCELERATION,
        }
    }
}

/// Position and velocity of the vehicle.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Body {
    /// Metres north, east, down of home.
    pub position: Ned,
    /// Metres per second.
    pub velocity: Ned,
    /// Heading in radians, -pi to pi, 0 is north, clockwise.
    pub yaw: f64,
    /// Turn rate in radians per second.
    pub yaw_rate: f64,
    /// Horizontal acceleration along the velocity, metres per second squared.
    pub acceleration: f64,
}

impl Body {
    /// Whether the vehicle touches the ground.
    #[must_use]
    pub fn on_ground(&self) -> bool {
        self.position[2] > -0.03
    }

    /// The velocity that leads to a position and stops there.
    #[must_use]
    pub fn towards(&self, place: Ned, speeds: Speeds) -> Ned {
        let mut want = [0.0; 3];
        for (axis, value) in want.iter_mut().enumerate() {
            *value = (place[axis] - self.position[axis]) * POSITION_GAIN;
        }
        let flat = want[0].hypot(want[1]);
        if flat > speeds.cruise {
            want[0] *= speeds.cruise / flat;
            want[1] *= speeds.cruise / flat;
        }
        want[2] = want[2].clamp(-speeds.up, speeds.down);
        want
    }

    /// The turn rate that leads to a heading, at most `limit` radians per second.
    #[must_use]
    pub fn turning_to(&self, yaw: f64, limit: f64) -> f64 {
        (wrap(yaw - self.yaw) * YAW_GAIN).clamp(-limit, limit)
    }

    /// Follows a velocity command for `dt` seconds; stops at the ground.
    pub fn follow(&mut self, want: Want, dt: f64) {
        let share = 1.0 - (-dt / want.lag).exp();
        let most = ACCELERATION * dt;
        let mut change: Ned = std::array::from_fn(|axis| (want.velocity[axis] - self.velocity[axis]) * share);
        let slows = change[0] * self.velocity[0] + change[1] * self.velocity[1] < 0.0;
        let flat = change[0].hypot(change[1]);
        let flat_most = dt * if slows { want.braking } else { want.accelerating };
        if flat > flat_most {
            change[0] *= flat_most / flat;
            change[1] *= flat_most / flat;
        }
        change[2] = change[2].clamp(-most, most);
        let before = self.velocity[0].hypot(self.velocity[1]);
        for (axis, change) in change.into_iter().enumerate() {
            self.velocity[axis] += change;
            self.position[axis] += self.velocity[axis] * dt;
        }
        self.acceleration = (self.velocity[0].hypot(self.velocity[1]) - before) / dt;
        self.yaw_rate = want.yaw_rate;
        self.yaw = wrap(self.yaw + self.yaw_rate * dt);
        self.meet_ground();
    }

    /// Falls for `dt` seconds.
    pub fn fall(&mut self, dt: f64) {
        self.velocity[2] += GRAVITY * dt;
        for axis in 0..3 {
            self.position[axis] += self.velocity[axis] * dt;
        }
        self.yaw_rate = 0.0;
        self.meet_ground();
    }

    fn meet_ground(&mut self) {
        if self.position[2] >= 0.0 {
            self.position[2] = 0.0;
            self.velocity = [0.0, 0.0, self.velocity[2].min(0.0)];
            self.yaw_rate = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brake(lag: f64) -> (f64, f64) {
        let mut body = Body {
            position: [0.0, 0.0, -5.0],
            velocity: [2.5, 0.0, 0.0],
            ..Body::default()
        };
        let mut time = 0.0;
        while body.velocity[0] > 0.02 {
            body.follow(Want::rest(lag), 0.01);
            time += 0.01;
        }
        (body.position[0], time)
    }

    #[test]
    fn braking_takes_the_measured_metres() {
        let (metres, _) = brake(VELOCITY_LAG);
        assert!((3.8..4.3).contains(&metres), "{metres}");
        let (metres, _) = brake(BRAKE_LAG);
        assert!((2.6..3.1).contains(&metres), "{metres}");
        let (metres, _) = brake(NO_LAG);
        assert!(metres < 0.6, "{metres}");
    }

    #[test]
    fn a_step_of_three_metres_takes_about_three_seconds() {
        let mut body = Body {
            position: [0.0, 0.0, -5.0],
            ..Body::default()
        };
        let speeds = Speeds {
            cruise: 12.0,
            up: 3.0,
            down: 1.5,
        };
        let (mut time, mut farthest) = (0.0, 0.0_f64);
        let mut arrived = None;
        while time < 10.0 {
            let velocity = body.towards([3.0, 0.0, -5.0], speeds);
            let want = Want {
                velocity,
                lag: POSITION_LAG,
                yaw_rate: body.turning_to(1.0, 3.0),
                braking: ACCELERATION,
                accelerating: ACCELERATION,
            };
            body.follow(want, 0.01);
            time += 0.01;
            farthest = farthest.max(body.position[0]);
            if arrived.is_none() && body.position[0] > 2.9 {
                arrived = Some(time);
            }
        }
        assert!((3.0..3.2).contains(&farthest), "{farthest}");
        assert!(arrived.is_some_and(|t| (2.0..4.0).contains(&t)), "{arrived:?}");
        assert!((body.yaw - 1.0).abs() < 0.01);
    }
}
