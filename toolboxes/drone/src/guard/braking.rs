//! The stopping distance of a vehicle.
//!
//! Read [`Braking::metres`], and [`reaches`] for a vehicle that accelerates.

use ovos_toolbox_sdk::prelude::*;

/// The model of a stop: the vehicle keeps its speed for a reaction time, then decelerates uniformly.
///
/// Measured with PX4 1.17 (SIH, default tuning), from the request to the farthest point: 0.5 to 1.0 m from 0.95 m/s,
/// 2.9 m from 2.5 m/s, 6.3 to 6.8 m from 3.8 to 4.2 m/s, and 7.8 m from 3.9 m/s once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Braking {
    /// Time at unchanged speed after the request, seconds, 0 to 3.
    pub reaction_s: f64,
    /// Deceleration after that, metres per second squared, 0.3 to 10.
    pub mps2: f64,
}

impl Default for Braking {
    fn default() -> Self {
        Self {
            reaction_s: 0.45,
            mps2: 1.65,
        }
    }
}

/// Safety factor of the guards; the longest measured stop was 1.17 times the model's.
const GUARDED: f64 = 1.25;
/// PX4's deceleration towards a target (`MPC_ACC_HOR`), metres per second squared ...
const TARGET_MPS2: f64 = 3.0;
/// ... and the jerk with which it builds up (`MPC_JERK_AUTO`), metres per second cubed.
const TARGET_JERK: f64 = 4.0;

/// By how much the velocity setpoint of PX4's own flights runs ahead of a vehicle that accelerates, seconds.
const SETPOINT_AHEAD_S: f64 = 0.35;

/// The highest speed that a vehicle may reach after a stop was requested, metres per second: PX4 ends an acceleration
/// with a limited jerk, and its velocity setpoint is ahead of the vehicle. `mps` is the speed at the request, `set_mps`
/// the set speed of the flight, and `mps2` the acceleration in the direction of the velocity, metres per second squared;
/// where it is not known, PX4's greatest one counts.
///
/// Measured with PX4 1.17 and 1.18 (SIH): the table is in the tests below.
pub(crate) fn reaches(mps: f64, set_mps: f64, mps2: Option<f64>) -> f64 {
    let mps2 = mps2.unwrap_or(TARGET_MPS2).clamp(0.0, TARGET_MPS2);
    let surge = mps2 * SETPOINT_AHEAD_S + mps2 * mps2 / (2.0 * TARGET_JERK);
    (mps + surge).min(set_mps).max(mps)
}

impl Braking {
    /// Metres from the request to standstill.
    pub(crate) fn metres(self, mps: f64) -> f64 {
        self.reaction_s * mps + mps * mps / (2.0 * self.mps2)
    }

    /// Metres that the guards keep free for a stop.
    pub(crate) fn guarded(self, mps: f64) -> f64 {
        GUARDED * self.metres(mps)
    }

    /// Metres beyond a target at which the vehicle may come to rest when the stop comes at the worst instant: just
    /// before it decelerates for the target.
    pub(crate) fn beyond_target(self, mps: f64) -> f64 {
        let slows_down = mps * mps / (2.0 * TARGET_MPS2) + mps * TARGET_MPS2 / (2.0 * TARGET_JERK);
        (self.guarded(mps) - slows_down).max(0.0)
    }

    /// Checks the ranges of the numbers.
    ///
    /// # Errors
    /// Names the key and the accepted values.
    pub(super) fn check(self) -> Result<(), String> {
        for (key, value, least, most) in [
            ("reaction_s", self.reaction_s, 0.0, 3.0),
            ("mps2", self.mps2, 0.3, 10.0),
        ] {
            if !(least..=most).contains(&value) {
                return Err(format!(
                    "flight_limits.braking.{key} {value}: expected {least} to {most}"
                ));
            }
        }
        Ok(())
    }
}

/// The highest speed reached on a path of this length from rest to rest, metres per second. PX4 builds up acceleration
/// and deceleration with the same jerk.
pub(super) fn reached(length_m: f64) -> f64 {
    (TARGET_JERK * (length_m / 2.0).powi(2)).cbrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_was_measured_and_the_guards_keep_more() {
        for (mps, least, most) in [(0.95, 0.5, 1.0), (2.5, 2.8, 3.2), (4.0, 6.3, 6.9)] {
            let metres = Braking::default().metres(mps);
            assert!((least..most).contains(&metres), "{mps} m/s: {metres} m");
        }
        assert!(Braking::default().guarded(4.0) > 7.8);
    }

    /// Stops of real PX4 1.18 and 1.17 (SIH) by ground truth. Each row: the set speed of the flight, its speed at the
    /// stop, the metres that it went on. `goto_gps` and the first leg of a path fly at 5 m/s, `goto_local` at 1.5.
    const STOPS: &[(f64, f64, f64)] = &[
        // 1.18, goto_gps: as it accelerated, then at steady speed.
        (5.0, 0.86, 4.4),
        (5.0, 0.97, 3.1),
        (5.0, 1.22, 4.4),
        (5.0, 1.59, 4.5),
        (5.0, 1.80, 5.8),
        (5.0, 2.45, 7.8),
        (5.0, 2.55, 8.8),
        (5.0, 3.07, 8.2),
        (5.0, 3.55, 9.5),
        (5.0, 3.60, 7.7),
        (5.0, 3.72, 8.1),
        (5.0, 3.75, 7.3),
        (5.0, 4.12, 8.4),
        (5.0, 4.14, 6.9),
        // 1.18, paths.
        (5.0, 0.98, 4.2),
        (5.0, 1.89, 4.2),
        (5.0, 3.27, 7.9),
        (5.0, 3.74, 6.5),
        (5.0, 4.70, 8.4),
        // 1.18, offboard: the least and the greatest of those reported.
        (1.5, 0.34, 0.3),
        (1.5, 0.77, 1.3),
        // 1.17, goto_gps and paths.
        (5.0, 0.84, 1.5),
        (5.0, 0.93, 3.5),
        (5.0, 0.98, 4.7),
        (5.0, 1.91, 5.0),
        (5.0, 1.49, 4.5),
        (5.0, 2.25, 7.0),
        (5.0, 3.69, 7.9),
        (5.0, 3.87, 7.0),
        (5.0, 4.00, 7.0),
        (5.0, 4.61, 7.9),
    ];

    #[test]
    fn a_vehicle_that_may_accelerate_is_given_the_room_that_real_stops_needed() {
        let braking = Braking::default();
        let mut short = 0;
        for &(set, mps, gone) in STOPS {
            let kept = braking.guarded(reaches(mps, set, None));
            assert!(
                kept >= gone,
                "{mps} of {set} m/s: {gone} m gone, {kept:.1} m kept"
            );
            short += u32::from(braking.guarded(mps) < gone);
        }
        // The bound by the speed alone fails in half of them.
        assert!(short >= 14, "{short}");
    }

    /// Each row: speed, set speed, acceleration, the speed that it may reach.
    #[test]
    fn what_it_may_reach_depends_on_its_acceleration_and_ends_at_the_set_speed() {
        for (mps, set, mps2, expected) in [
            (1.0, 5.0, Some(0.0), 1.0),
            (1.0, 5.0, Some(-2.0), 1.0),
            (1.0, 5.0, Some(1.0), 1.475),
            (1.0, 5.0, Some(3.0), 3.175),
            (1.0, 5.0, Some(9.0), 3.175),
            (1.0, 5.0, None, 3.175),
            (4.0, 5.0, None, 5.0),
            (6.0, 5.0, None, 6.0),
            (0.3, 1.0, None, 1.0),
        ] {
            let found = reaches(mps, set, mps2);
            assert!(
                (found - expected).abs() < 1e-9,
                "{mps} of {set} at {mps2:?}: {found}"
            );
        }
    }
}
