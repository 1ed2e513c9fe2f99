//! Movement in closed form: a position is computed from the time of the start, not stepped.
//!
//! Owns joints, lift and hitch ([`Axes`]) and the base ([`Odometry`]). Pure: time is an argument.

use crate::action::Velocity;
use crate::bearing::half_circle;

/// How long the base takes to come to rest after a halt, in simulated seconds: it goes at half its speed for this long,
/// which covers the distance of an even deceleration.
pub(super) const COAST: f64 = 0.04;

/// Axes that move together and arrive together.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    limits: Vec<Limit>,
    from: Vec<f64>,
    to: Vec<f64>,
    begun: f64,
    seconds: f64,
}

/// What an axis can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) max_speed: f64,
}

impl Axes {
    pub(super) fn at(positions: Vec<f64>, limits: Vec<Limit>) -> Self {
        Self {
            limits,
            to: positions.clone(),
            from: positions,
            begun: 0.0,
            seconds: 0.0,
        }
    }

    pub(super) fn positions(&self, now: f64) -> Vec<f64> {
        let part = if self.seconds > 0.0 {
            ((now - self.begun) / self.seconds).clamp(0.0, 1.0)
        } else {
            1.0
        };
        if part >= 1.0 {
            return self.to.clone();
        }
        self.from
            .iter()
            .zip(&self.to)
            .map(|(from, to)| from + (to - from) * part)
            .collect()
    }

    pub(super) fn is_moving(&self, now: f64) -> bool {
        self.rests_in(now) > 0.0
    }

    pub(super) fn rests_in(&self, now: f64) -> f64 {
        (self.begun + self.seconds - now).max(0.0)
    }

    pub(super) fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Starts a movement and returns its seconds. An axis without a goal in `to` stays.
    pub(super) fn set_out(&mut self, now: f64, to: &[Option<f64>], speed: f64) -> f64 {
        let from = self.positions(now);
        let wanted = |index: usize| to.get(index).copied().flatten();
        self.to = from
            .iter()
            .enumerate()
            .map(|(index, at)| wanted(index).unwrap_or(*at))
            .collect();
        let seconds =
            |((from, to), limit): ((&f64, &f64), &Limit)| (to - from).abs() / (limit.max_speed * speed);
        self.seconds = from
            .iter()
            .zip(&self.to)
            .zip(&self.limits)
            .map(seconds)
            .fold(0.0, f64::max);
        self.from = from;
        self.begun = now;
        self.seconds
    }

    /// Stays where it is.
    pub(super) fn stop(&mut self, now: f64) {
        self.from = self.positions(now);
        self.to.clone_from(&self.from);
        self.seconds = 0.0;
        self.begun = now;
    }

    pub(super) fn way(&self) -> (&[f64], &[f64]) {
        (&self.from, &self.to)
    }
}

/// The place of the base, from its place at the simulator's start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Odometry {
    from: Place,
    velocity: Velocity,
    begun: f64,
    seconds: f64,
}

/// A place in metres, and a heading in radians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) heading: f64,
}

impl Odometry {
    pub(super) fn place(&self, now: f64) -> Place {
        self.from
            .after(&self.velocity, (now - self.begun).clamp(0.0, self.seconds))
    }

    pub(super) fn velocity(&self, now: f64) -> Velocity {
        if self.is_moving(now) {
            self.velocity
        } else {
            Velocity::default()
        }
    }

    pub(super) fn is_moving(&self, now: f64) -> bool {
        self.rests_in(now) > 0.0
    }

    pub(super) fn rests_in(&self, now: f64) -> f64 {
        (self.begun + self.seconds - now).max(0.0)
    }

    pub(super) fn drive(&mut self, now: f64, velocity: Velocity, seconds: f64) {
        self.from = self.place(now);
        self.velocity = velocity;
        self.begun = now;
        self.seconds = seconds;
    }

    /// Brakes; coasting is over within [`COAST`].
    pub(super) fn stop(&mut self, now: f64) {
        let left = self.begun + self.seconds - now;
        if left > 0.0 {
            let Velocity { x, y, turn } = self.velocity;
            let half = Velocity {
                x: x / 2.0,
                y: y / 2.0,
                turn: turn / 2.0,
            };
            self.drive(now, half, left.min(COAST));
        }
    }
}

impl Place {
    /// The heading from where it began, in degrees, positive to the left, above -180 to 180.
    pub(super) fn heading_degrees(self) -> f64 {
        half_circle(thousandth(self.heading.to_degrees()))
    }

    fn after(self, velocity: &Velocity, seconds: f64) -> Self {
        let Self { x, y, heading } = self;
        let turned = velocity.turn * seconds;
        // The chord of the arc that a constant velocity draws; for a straight line it is the line.
        let middle = heading + turned / 2.0;
        let shrink = if turned.abs() > 1e-9 {
            (turned / 2.0).sin() / (turned / 2.0)
        } else {
            1.0
        };
        let (along, across) = (velocity.x * seconds * shrink, velocity.y * seconds * shrink);
        Self {
            x: x + along * middle.cos() - across * middle.sin(),
            y: y + along * middle.sin() + across * middle.cos(),
            heading: heading + turned,
        }
    }
}

/// Rounds to three decimals.
pub(super) fn thousandth(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_arrive_together_and_in_time() {
        let limit = Limit {
            min: -90.0,
            max: 90.0,
            max_speed: 100.0,
        };
        let mut axes = Axes::at(vec![0.0, 0.0], vec![limit; 2]);
        let seconds = axes.set_out(10.0, &[Some(50.0), Some(-10.0)], 0.5);
        assert!((seconds - 1.0).abs() < 1e-9, "50 degrees at 50 degrees/s");
        assert_eq!(axes.positions(10.5), [25.0, -5.0]);
        axes.stop(10.5);
        assert_eq!(axes.positions(99.0), [25.0, -5.0]);
        assert!(!axes.is_moving(10.5));
    }

    #[test]
    fn a_base_that_brakes_rests_soon() {
        let mut odometry = Odometry::default();
        let ahead = Velocity {
            x: 0.5,
            ..Velocity::default()
        };
        odometry.drive(0.0, ahead, 2.0);
        assert!((odometry.place(1.0).x - 0.5).abs() < 1e-9);
        odometry.stop(1.0);
        assert!((odometry.place(9.0).x - 0.51).abs() < 1e-9, "0.25 m/s for 40 ms");
        assert!(!odometry.is_moving(1.0 + COAST));
    }
}
