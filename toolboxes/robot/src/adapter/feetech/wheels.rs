//! Three omnidirectional wheels: from a velocity of the robot to the speeds of its wheels and back.
//!
//! A wheel at bearing β (counterclockwise from straight ahead), R away from the centre, rolls along its tangent:
//! its rim moves with −sin β·x + cos β·y + R·turn. With the bearings 60°, 180° and 300° this is the matrix that the
//! LeKiwi software uses. Pure. Read [`Wheels`].

use std::f64::consts::TAU;

use serde::Deserialize;

use super::servo::{TURN, exact, round};
use crate::action::Velocity;

/// The size of the base.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BaseSize {
    /// Radius of a wheel, metres.
    pub wheel_radius: f64,
    /// From the centre of the base to a wheel, metres.
    pub base_radius: f64,
}

impl Default for BaseSize {
    fn default() -> Self {
        Self {
            wheel_radius: 0.05,
            base_radius: 0.125,
        }
    }
}

/// The bearings of the wheels, and the size of the base.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wheels {
    /// Degrees counterclockwise from straight ahead.
    bearings: Vec<f64>,
    size: BaseSize,
}

impl Wheels {
    pub(crate) fn new(bearings: impl IntoIterator<Item = f64>) -> Self {
        Self {
            bearings: bearings.into_iter().collect(),
            size: BaseSize::default(),
        }
    }

    pub(crate) fn set_size(&mut self, size: BaseSize) {
        self.size = size;
    }

    /// Steps per second of each wheel, and the fraction of the velocity that they reach. It is below 1 where a wheel
    /// would have to be faster than its servo: then all wheels are slowed down together.
    pub(crate) fn speeds(&self, velocity: &Velocity) -> (Vec<i64>, f64) {
        let rims = self.bearings.iter().map(|bearing| {
            let (sin, cos) = bearing.to_radians().sin_cos();
            -sin * velocity.x + cos * velocity.y + self.size.base_radius * velocity.turn
        });
        let steps: Vec<f64> = rims
            .map(|rim| rim / self.size.wheel_radius / TAU * TURN)
            .collect();
        let fastest = steps
            .iter()
            .fold(0.0, |fastest: f64, step| fastest.max(step.abs()));
        let slower = if fastest > FASTEST { FASTEST / fastest } else { 1.0 };
        (
            steps.into_iter().map(|step| round(step * slower)).collect(),
            slower,
        )
    }

    /// The velocity of the robot whose three wheels turn like this; nothing for another number of wheels.
    pub(crate) fn velocity(&self, speeds: &[i64]) -> Velocity {
        if speeds.len() != 3 || self.bearings.len() != 3 {
            return Velocity::default();
        }
        let rims: Vec<f64> = speeds
            .iter()
            .map(|speed| exact(*speed) / TURN * TAU * self.size.wheel_radius)
            .collect();
        // Three wheels 120 degrees apart: the transpose is the inverse, up to the factors below.
        let mut velocity = Velocity::default();
        for (bearing, rim) in self.bearings.iter().zip(&rims) {
            let (sin, cos) = bearing.to_radians().sin_cos();
            velocity.x -= sin * rim * 2.0 / 3.0;
            velocity.y += cos * rim * 2.0 / 3.0;
            velocity.turn += rim / (3.0 * self.size.base_radius);
        }
        velocity
    }
}

/// Steps per second that an STS3215 reaches without a load, less a tenth.
const FASTEST: f64 = 3000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn velocity(x: f64, y: f64, turn: f64) -> Velocity {
        Velocity { x, y, turn }
    }

    /// The matrix of the LeKiwi software: wheels at 240, 0 and 120 degrees, less 90; R 0.125 m, r 0.05 m.
    fn lekiwi(wanted: &Velocity) -> Vec<i64> {
        [150.0f64, -90.0, 30.0]
            .iter()
            .map(|angle| {
                let (sin, cos) = angle.to_radians().sin_cos();
                let rim = cos * wanted.x + sin * wanted.y + 0.125 * wanted.turn;
                round((rim / 0.05).to_degrees() * 4096.0 / 360.0)
            })
            .collect()
    }

    #[test]
    fn lekiwi_wheels_turn_as_its_own_software_turns_them() {
        let wheels = Wheels::new([60.0, 180.0, 300.0]);
        for wanted in [
            velocity(0.1, 0.0, 0.0),
            velocity(0.0, 0.1, 0.0),
            velocity(0.0, 0.0, 0.5),
            velocity(-0.05, 0.07, -0.3),
        ] {
            assert_eq!(wheels.speeds(&wanted).0, lekiwi(&wanted), "{wanted:?}");
        }
    }

    #[test]
    fn a_strafe_is_not_a_rotation_and_both_come_back() {
        let wheels = Wheels::new([0.0, 120.0, 240.0]);
        for (wanted, signs) in [
            (velocity(0.1, 0.0, 0.0), [0, -1, 1]),
            (velocity(0.0, 0.1, 0.0), [1, -1, -1]),
            (velocity(0.0, 0.0, 0.5), [1, 1, 1]),
        ] {
            let (speeds, _) = wheels.speeds(&wanted);
            let found: Vec<i64> = speeds.iter().map(|speed| speed.signum()).collect();
            assert_eq!(found, signs, "{wanted:?}: {speeds:?}");
            let back = wheels.velocity(&speeds);
            for (a, b) in [(back.x, wanted.x), (back.y, wanted.y), (back.turn, wanted.turn)] {
                assert!((a - b).abs() < 1e-3, "{wanted:?} came back as {back:?}");
            }
        }
    }

    #[test]
    fn what_is_too_fast_keeps_its_direction() {
        let wheels = Wheels::new([0.0, 120.0, 240.0]);
        let (speeds, slower) = wheels.speeds(&velocity(2.0, 1.0, 0.0));
        let back = wheels.velocity(&speeds);
        assert!((back.x / back.y - 2.0).abs() < 0.01, "{back:?}");
        assert!((back.x - 2.0 * slower).abs() < 0.01, "{back:?} at {slower}");
    }
}
