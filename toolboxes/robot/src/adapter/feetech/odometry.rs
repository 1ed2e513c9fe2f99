//! Where the base stands by its wheels: dead reckoning.
//!
//! Owns the sum of what the wheels have turned since the toolbox was opened. Wheels slip, and nothing here notices that the base was
//! lifted. Pure. Read [`Odometry`].

use super::servo::{TURN, round};
use super::wheels::Wheels;
use crate::adapter::around::Place;

/// Where the base stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Odometry {
    pub(super) place: Place,
    /// How far it has driven and turned, in metres and radians together.
    pub(super) way: f64,
    /// The steps of the wheels at the last look.
    wheels: Vec<i64>,
}

impl Odometry {
    /// The wheels are at these steps now; they have turned by less than half a turn since the last look.
    pub(super) fn look(&mut self, geometry: &Wheels, now: Vec<i64>) {
        self.count(geometry, now, nearest);
    }

    /// The wheels are at these steps now; `way` is the way of a wheel by the difference of its steps.
    pub(super) fn count(&mut self, geometry: &Wheels, now: Vec<i64>, way: impl Fn(i64) -> i64) {
        if now.len() == self.wheels.len() {
            let turned = now.iter().zip(&self.wheels).map(|(now, then)| way(now - then));
            let step = geometry.velocity(&turned.collect::<Vec<_>>());
            self.way += step.x.hypot(step.y) + step.turn.abs();
            self.place = self.place.after(&step, 1.0);
        }
        self.wheels = now;
    }
}

/// The way of a wheel whose steps begin anew with each turn.
fn nearest(steps: i64) -> i64 {
    let turn = round(TURN);
    (steps + turn / 2).rem_euclid(turn) - turn / 2
}

#[cfg(test)]
mod tests {
    use super::super::servo::exact;
    use super::*;
    use crate::action::Velocity;

    #[test]
    fn turns_of_the_wheels_add_up_to_a_way() {
        let geometry = Wheels::new([60.0, 180.0, 300.0]);
        let mut odometry = Odometry::default();
        let mut steps = vec![4_000, 10, 2_048];
        odometry.look(&geometry, steps.clone());
        // Ahead for a second, to the left by a quarter of a circle, ahead again: each in tenths of a second.
        let quarter = std::f64::consts::FRAC_PI_2;
        for (x, turn) in [(0.2, 0.0), (0.0, quarter), (0.1, 0.0)] {
            let (speeds, _) = geometry.speeds(&Velocity { x, y: 0.0, turn });
            for _ in 0..10 {
                for (at, speed) in steps.iter_mut().zip(&speeds) {
                    *at = (*at + round(exact(*speed) / 10.0)).rem_euclid(round(TURN));
                }
                odometry.look(&geometry, steps.clone());
            }
        }
        let Place { x, y, heading } = odometry.place;
        assert!((x - 0.2).abs() < 2e-3 && (y - 0.1).abs() < 2e-3, "{x} {y}");
        assert!((heading - quarter).abs() < 0.02, "{heading}");
        assert!((odometry.way - 0.3 - quarter).abs() < 0.02, "{}", odometry.way);
    }
}
