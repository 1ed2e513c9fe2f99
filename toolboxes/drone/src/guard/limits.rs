//! The limits of the guards, from the configuration.

use ovos_toolbox_sdk::prelude::*;

use super::braking::Braking;
use super::refusal::{Refusal, refuse};

/// The numbers of the guards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Lowest height in flight above home, metres.
    pub min_alt_m: f64,
    /// Greatest height above home, metres, at most 120.
    pub max_alt_m: f64,
    /// Greatest turning between take-off or replan and the next, degrees.
    pub max_rotation_deg: f64,
    /// Greatest forward distance between take-off or replan and the next, metres.
    pub max_forward_m: f64,
    /// No motion below this charge, percent.
    pub min_battery_pct: f64,
    /// Distance kept to the fence, metres; PX4 reacts only at the line and overshoots by metres.
    pub fence_margin_m: f64,
    /// Longest leg of goto_gps and follow_path, metres.
    pub max_leg_m: f64,
    /// Greatest distance of a goto_local target from home, metres.
    pub local_radius_m: f64,
    /// Most waypoints of a path.
    pub max_waypoints: usize,
    /// Least distance between waypoints, metres.
    pub min_spacing_m: f64,
    /// How many times a flight may be replanned; each replan resets turning and forward distance.
    pub max_replans: u32,
    /// Greatest turning in one flight, replans included, degrees; four times `max_rotation_deg` when it is missing.
    pub max_flight_rotation_deg: Option<f64>,
    /// Greatest forward distance in one flight, replans included, metres; four times `max_forward_m` when it is
    /// missing.
    pub max_flight_forward_m: Option<f64>,
    /// Flight time with a full battery, seconds; used for the way home.
    pub endurance_s: f64,
    /// Speed assumed for the way home, metres per second.
    pub cruise_mps: f64,
    /// Speed of small moves, metres per second, 0.2 to 3.
    pub step_mps: f64,
    /// How a vehicle comes to rest: the target of a stop, and the room that the guards keep for it.
    pub braking: Braking,
    /// A move has arrived within this distance of its target, metres, 0.2 to 3. When it is missing: twice the scatter
    /// (RMS) of the last 10 s of hovering, at least 0.5 m and at most 1.0 m.
    pub arrive_m: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min_alt_m: 0.5,
            max_alt_m: 30.0,
            max_rotation_deg: 360.0,
            max_forward_m: 5.0,
            min_battery_pct: 25.0,
            fence_margin_m: 3.0,
            max_leg_m: 500.0,
            local_radius_m: 100.0,
            max_waypoints: 25,
            min_spacing_m: 1.0,
            max_replans: 10,
            max_flight_rotation_deg: None,
            max_flight_forward_m: None,
            endurance_s: 900.0,
            cruise_mps: 3.0,
            step_mps: 1.0,
            braking: Braking::default(),
            arrive_m: None,
        }
    }
}

/// The default of the limits of a whole flight, as a multiple of the limits between two replans.
const BUDGETS: f64 = 4.0;

impl Limits {
    /// Greatest turning in one flight, degrees.
    pub(crate) fn flight_rotation_deg(&self) -> f64 {
        self.max_flight_rotation_deg
            .unwrap_or(BUDGETS * self.max_rotation_deg)
    }

    /// Greatest forward distance in one flight, metres.
    pub(crate) fn flight_forward_m(&self) -> f64 {
        self.max_flight_forward_m.unwrap_or(BUDGETS * self.max_forward_m)
    }

    /// Checks the ranges of the numbers.
    ///
    /// # Errors
    /// Names the key and the accepted values.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ranges = [
            ("min_alt_m", self.min_alt_m, 0.3, 20.0),
            ("max_alt_m", self.max_alt_m, self.min_alt_m + 1.0, 120.0),
            ("max_rotation_deg", self.max_rotation_deg, 45.0, 3600.0),
            ("max_forward_m", self.max_forward_m, 0.5, 500.0),
            (
                "max_flight_rotation_deg",
                self.flight_rotation_deg(),
                self.max_rotation_deg,
                100_000.0,
            ),
            (
                "max_flight_forward_m",
                self.flight_forward_m(),
                self.max_forward_m,
                5000.0,
            ),
            ("min_battery_pct", self.min_battery_pct, 10.0, 90.0),
            ("fence_margin_m", self.fence_margin_m, 1.0, 50.0),
            ("max_leg_m", self.max_leg_m, 1.0, 5000.0),
            ("local_radius_m", self.local_radius_m, 1.0, 5000.0),
            ("min_spacing_m", self.min_spacing_m, 0.5, 100.0),
            ("endurance_s", self.endurance_s, 60.0, 36_000.0),
            ("cruise_mps", self.cruise_mps, 0.5, 8.0),
            ("step_mps", self.step_mps, 0.2, 3.0),
            ("arrive_m", self.arrive_m.unwrap_or(1.0), 0.2, 3.0),
        ];
        for (key, value, min, max) in ranges {
            if !value.is_finite() || !(min..=max).contains(&value) {
                return Err(format!("flight_limits.{key} {value}: expected {min} to {max}"));
            }
        }
        self.braking.check()
    }

    /// Checks that a change of height ends in the altitude band, or leads back towards it.
    pub(super) fn altitude(&self, from: f64, to: f64) -> Result<(), Refusal> {
        // PX4 settles below the requested take-off height: below the band a move up is allowed, a move further down is
        // not.
        if to < self.min_alt_m && to < from - 0.05 || to < 0.2 {
            return refuse(
                "altitude_floor",
                format!(
                    "{to:.2} m above home is below the floor of {:.2} m",
                    self.min_alt_m
                ),
            );
        }
        if to > self.max_alt_m && to > from - 0.05 {
            return refuse(
                "altitude_ceiling",
                format!(
                    "{to:.2} m above home is above the ceiling of {:.2} m",
                    self.max_alt_m
                ),
            );
        }
        Ok(())
    }
}
