//! The stopping distance of a vehicle.
//!
//! Read [`Braking::metres`].

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
}
