//! The state object of a flight: its goal, its last detection, and the turning and forward distance used.

use ovos_toolbox_sdk::prelude::*;

use crate::guard::{Facts, Limits};
use crate::scene::Detection;

/// State of one flight. The accumulated turning and forward distance return to zero at take-off and at each replan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flight {
    pub(crate) goal: Option<String>,
    pub(crate) last_detection: Option<(String, Detection)>,
    pub(crate) rotation_accum_deg: f64,
    pub(crate) forward_accum_m: f64,
    /// Totals of the whole flight; a replan does not reset them.
    pub(crate) flight_rotation_deg: f64,
    pub(crate) flight_forward_m: f64,
    pub(crate) plan_id: Option<String>,
    pub(crate) replans: u32,
}

impl Flight {
    /// Resets everything but the goal at take-off.
    pub(crate) fn begin(&mut self) {
        *self = Self {
            goal: self.goal.take(),
            ..Self::default()
        };
    }

    /// Adds a turn, in degrees.
    pub(crate) fn turned(&mut self, deg: f64) {
        self.rotation_accum_deg += deg;
        self.flight_rotation_deg += deg;
    }

    /// Adds forward distance, in metres.
    pub(crate) fn moved_forward(&mut self, metres: f64) {
        self.forward_accum_m += metres;
        self.flight_forward_m += metres;
    }

    /// The state object for the caller; it is also published on the bus when it changes.
    pub(crate) fn object(&self, vehicle: &str, facts: &Facts, limits: &Limits) -> Value {
        let detection = self.last_detection.as_ref().map(|(object, seen)| {
            json!({"object": object, "x": seen.x, "y": seen.y, "dist_m": seen.distance(), "conf": seen.conf})
        });
        let taken = |failsafe: bool| {
            let taken = facts.overridden.as_ref();
            taken
                .filter(|taken| taken.failsafe == failsafe)
                .map(|taken| &taken.how)
        };
        let round = |value: f64| (value * 100.0).round() / 100.0;
        json!({
            "vehicle": vehicle,
            "goal": self.goal,
            "last_detection": detection,
            "rotation_accum_deg": round(self.rotation_accum_deg),
            "forward_accum_m": round(self.forward_accum_m),
            "flight_rotation_deg": round(self.flight_rotation_deg),
            "flight_forward_m": round(self.flight_forward_m),
            "plan_id": self.plan_id,
            "replans": self.replans,
            "safety": {
                "battery_pct": facts.battery_pct.map(f64::round),
                "gps_ok": facts.health.is_some_and(|health| health.global && health.home),
                "ekf_ok": facts.health.is_some_and(|health| health.local),
                "free_ahead": facts.free_ahead_m.as_ref().is_ok_and(|metres| *metres >= 1.0),
                "link_ok": facts.link_ok,
                "pilot_override": taken(false),
                "failsafe": taken(true),
            },
            "limits": {
                "max_rotation_deg": limits.max_rotation_deg,
                "max_forward_m": limits.max_forward_m,
                "max_flight_rotation_deg": limits.flight_rotation_deg(),
                "max_flight_forward_m": limits.flight_forward_m(),
                "min_battery_pct": limits.min_battery_pct,
                "min_alt_m": limits.min_alt_m,
                "max_alt_m": limits.max_alt_m,
            },
        })
    }
}
