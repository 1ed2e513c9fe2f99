//! Wheels: from a velocity of the robot to the speeds of its wheels and back.
//!
//! A wheel at bearing β (counterclockwise from straight ahead), R away from the centre, rolls along its tangent:
//! its rim moves with −sin β·x + cos β·y + R·turn. With the bearings 60°, 180° and 300° this is the matrix that the
//! LeKiwi software uses; two wheels at 90° and 270° drive as a differential base does. Pure. Read [`Wheels`].

use std::f64::consts::TAU;

use serde::Deserialize;

use super::servo::{TURN, exact, round};
use crate::action::Velocity;

/// The size of the base.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
            let [along, across, round] = rolls(*bearing);
            along * velocity.x + across * velocity.y + round * self.size.base_radius * velocity.turn
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

    /// The velocity of the robot whose wheels turn like this: the one that fits them best, and nothing in the ways in which they
    /// do not move it.
    pub(crate) fn velocity(&self, speeds: &[i64]) -> Velocity {
        // The normal equations of `rim = -sin β·x + cos β·y + R·turn`, in one row for each of x, y and R·turn.
        let (mut rows, mut sums) = ([[0.0; 3]; 3], [0.0; 3]);
        for (bearing, speed) in self.bearings.iter().zip(speeds) {
            let rim = exact(*speed) / TURN * TAU * self.size.wheel_radius;
            let wheel = rolls(*bearing);
            for (row, (sum, of_row)) in rows.iter_mut().zip(sums.iter_mut().zip(wheel)) {
                *sum += of_row * rim;
                row.iter_mut()
                    .zip(wheel)
                    .for_each(|(cell, of_column)| *cell += of_row * of_column);
            }
        }
        let [x, y, turn] = solved(rows, sums);
        Velocity {
            x,
            y,
            turn: turn / self.size.base_radius,
        }
    }

    /// Checks that wheels that stand like this drive a base: forwards and round, and sideways where it is said to go there.
    ///
    /// # Errors
    /// They do not, with what they lack.
    pub(super) fn check(&self, sideways: bool) -> Result<(), String> {
        let one = |velocity: Velocity| {
            let back = self.velocity(&self.speeds(&velocity).0);
            let off = [
                back.x - velocity.x,
                back.y - velocity.y,
                (back.turn - velocity.turn) * self.size.base_radius,
            ];
            off.iter().all(|off| off.abs() < 0.01)
        };
        let still = Velocity::default();
        let ways = [
            ("forwards", Velocity { x: 0.1, ..still }, true),
            ("round", Velocity { turn: 0.5, ..still }, true),
            (
                "sideways (parts.base.max_lateral)",
                Velocity { y: 0.1, ..still },
                sideways,
            ),
        ];
        let lacking = ways
            .into_iter()
            .find(|(_, velocity, wanted)| *wanted && !one(*velocity));
        match lacking {
            None => Ok(()),
            Some((way, ..)) => Err(format!(
                "channels.buses: wheels at the bearings {:?} cannot move the base {way}; expected two wheels opposite each \
                 other (90 and 270), or three omni wheels 120 degrees apart",
                self.bearings
            )),
        }
    }
}

/// How fast the rim of a wheel at a bearing rolls for one of x, y and R·turn.
fn rolls(bearing: f64) -> [f64; 3] {
    let (sin, cos) = bearing.to_radians().sin_cos();
    [-sin, cos, 1.0]
}

/// What solves three equations; zero for an unknown that they say nothing about.
fn solved(mut rows: [[f64; 3]; 3], mut sums: [f64; 3]) -> [f64; 3] {
    // Too small for any wheel, and enough for a way in which no wheel rolls.
    for (nth, row) in rows.iter_mut().enumerate() {
        row[nth] += 1e-9;
    }
    for pivot in 0..3 {
        let upper = rows[pivot];
        for row in 0..3 {
            if row != pivot {
                let factor = rows[row][pivot] / upper[pivot];
                rows[row] = [0, 1, 2].map(|column| rows[row][column] - factor * upper[column]);
                sums[row] -= factor * sums[pivot];
            }
        }
    }
    [0, 1, 2].map(|nth| sums[nth] / rows[nth][nth])
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
    fn wheels_that_cannot_drive_a_base_are_refused() {
        for (bearings, sideways, wrong) in [
            (&[0.0, 120.0, 240.0][..], true, None),
            (&[60.0, 180.0, 300.0], true, None),
            (&[45.0, 135.0, 225.0, 315.0], true, None),
            (&[90.0, 270.0], false, None),
            (&[90.0, 270.0], true, Some("sideways")),
            (&[], false, Some("forwards")),
            (&[90.0], false, Some("forwards")),
            (&[0.0, 180.0], false, Some("forwards")),
            (&[90.0, 90.0], false, Some("forwards")),
            (&[0.0, 0.0, 120.0], true, Some("")),
        ] {
            let found = Wheels::new(bearings.iter().copied()).check(sideways);
            match (&found, wrong) {
                (Ok(()), None) => {}
                (Err(why), Some(wrong)) => assert!(why.contains(wrong), "{bearings:?}: {why}"),
                _ => panic!("{bearings:?}: {found:?}"),
            }
        }
        let wheels = Wheels::new([90.0, 270.0]);
        let (speeds, _) = wheels.speeds(&velocity(0.1, 0.0, 0.4));
        let back = wheels.velocity(&speeds);
        assert!(
            (back.x - 0.1).abs() < 1e-3 && back.y.abs() < 1e-3 && (back.turn - 0.4).abs() < 1e-2,
            "{back:?}"
        );
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
