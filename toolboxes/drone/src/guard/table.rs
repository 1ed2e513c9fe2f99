//! The table: for each tool its effect, what its numbers may be, and what has to hold before anything is sent.
//!
//! Read [`rows`] first; everything the guards do with a call follows from its row and the checks of its target.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::Effect;

use super::range::Range;
use super::{Adjusted, Facts, Health, Landed, Limits, Refusal, Treatment, refuse};

/// Something that has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It is a vehicle that may be commanded.
    Trusted,
    /// The vehicle is heard.
    Link,
    /// Nobody else has taken over.
    Ours,
    /// Everything the vehicle checks before arming is well.
    Preflight,
    OnGround,
    Armed,
    NotInAir,
    InAir,
    /// GPS and home.
    Global,
    /// EKF, and a fresh pose.
    Local,
    Home,
    Battery,
    Camera,
    /// What vision has seen is fresh.
    Vision,
}

impl Need {
    pub(super) fn check(self, facts: &Facts, limits: &Limits) -> Result<(), Refusal> {
        match self {
            Self::Trusted => facts
                .trusted
                .as_ref()
                .map_or_else(|why| refuse("not_trusted", why.clone()), |()| Ok(())),
            Self::Link => demand(facts.link_ok, "link_down", || {
                "the vehicle is not heard".to_string()
            }),
            Self::Ours => {
                if let Some(how) = &facts.overridden {
                    return refuse(
                        "pilot_override",
                        format!("{how}; motion is refused until ovos.tools.resume"),
                    );
                }
                match facts.mode {
                    Some(mode) if mode.is_manual() && facts.in_air != Some(false) => refuse(
                        "pilot_override",
                        format!("a pilot flies the vehicle (mode {})", mode.name()),
                    ),
                    _ => Ok(()),
                }
            }
            Self::Preflight => preflight(facts),
            Self::OnGround => match facts.landed {
                Some(Landed::OnGround) => Ok(()),
                Some(_) => refuse("in_air", "the vehicle is not on the ground"),
                None => refuse(
                    "no_telemetry",
                    "it is not known whether the vehicle is on the ground",
                ),
            },
            Self::Armed => known(facts.armed, "whether the vehicle is armed").and_then(|armed| {
                demand(armed, "not_armed", || {
                    "the vehicle is not armed: call arm first".into()
                })
            }),
            Self::NotInAir => known(facts.in_air, "whether the vehicle is in the air")
                .and_then(|in_air| demand(!in_air, "in_air", || "the vehicle is in the air already".into())),
            Self::InAir => known(facts.in_air, "whether the vehicle is in the air").and_then(|in_air| {
                demand(in_air, "not_in_air", || {
                    "the vehicle is not in the air: call arm and takeoff".into()
                })
            }),
            Self::Global => {
                let health = known(facts.health, "the vehicle's health")?;
                demand(health.global && health.home, "no_global_position", || {
                    "no global position or no home position: wait for GPS".into()
                })
            }
            Self::Local => {
                let health = known(facts.health, "the vehicle's health")?;
                demand(health.local, "no_local_position", || {
                    "no local position (EKF)".into()
                })?;
                demand(facts.pose.is_some(), "stale_telemetry", || {
                    "the position is older than 1 s, or not known".into()
                })
            }
            Self::Home => demand(facts.home.is_some(), "no_home", || {
                "the home position is not known".into()
            }),
            Self::Battery => match facts.battery_pct {
                None => refuse("no_battery_data", "the battery's charge is not known"),
                Some(pct) => demand(pct >= limits.min_battery_pct, "battery_low", || {
                    format!(
                        "battery at {pct:.0} %, at least {:.0} % are needed",
                        limits.min_battery_pct
                    )
                }),
            },
            Self::Camera => demand(facts.camera.is_some(), "no_camera", || {
                "the vehicle has no camera that MAVSDK knows".into()
            }),
            Self::Vision => match &facts.vision {
                Ok(()) => Ok(()),
                Err(why) => refuse("vision_unavailable", why.clone()),
            },
        }
    }
}

fn known<T>(fact: Option<T>, what: &str) -> Result<T, Refusal> {
    fact.map_or_else(|| refuse("no_telemetry", format!("{what} is not known")), Ok)
}

fn demand(holds: bool, code: &'static str, msg: impl FnOnce() -> String) -> Result<(), Refusal> {
    if holds { Ok(()) } else { refuse(code, msg()) }
}

fn preflight(facts: &Facts) -> Result<(), Refusal> {
    let health = known(facts.health, "the vehicle's health")?;
    // "armable" is about the mode, too: PX4 goes back to OFFBOARD after a flight, which arms only with set points. `arm`
    // leaves such a mode first, and the vehicle answers then.
    let missing = Health {
        armable: health.armable || facts.mode.is_some_and(|mode| !mode.is_calm()),
        ..health
    }
    .missing();
    demand(missing.is_empty(), "preflight", || {
        let words = facts
            .last_text
            .as_deref()
            .map_or(String::new(), |text| format!("; it says: {text}"));
        format!("preflight checks fail: {}{words}", missing.join(", "))
    })
}

/// One tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) tool: &'static str,
    pub(crate) effect: Effect,
    pub(crate) category: &'static str,
    /// How long it may take at most, in seconds.
    pub(crate) timeout_s: u64,
    pub(crate) ranges: &'static [Range],
    pub(crate) needs: &'static [Need],
}

impl Row {
    /// The number to use for an argument.
    ///
    /// # Errors
    /// It is not finite, or outside a range that rejects.
    pub(crate) fn number(&self, arg: &str, value: f64, adjusted: &mut Vec<Adjusted>) -> Result<f64, Refusal> {
        match self.ranges.iter().find(|range| range.arg == arg) {
            Some(range) => range.apply(value, adjusted),
            None if value.is_finite() => Ok(value),
            None => refuse("not_finite", format!("{arg}: expected a finite number")),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }
}

/// The row of a tool.
pub(crate) fn row(tool: &str) -> Option<&'static Row> {
    rows().iter().find(|row| row.tool == tool)
}

const fn clamp(arg: &'static str, min: f64, max: f64) -> Range {
    Range {
        arg,
        min,
        max,
        treatment: Treatment::Clamp,
    }
}

const fn reject(arg: &'static str, min: f64, max: f64) -> Range {
    Range {
        arg,
        min,
        max,
        treatment: Treatment::Reject,
    }
}

const MOVE: &[Need] = &[
    Need::Trusted,
    Need::Link,
    Need::Ours,
    Need::Armed,
    Need::InAir,
    Need::Local,
    Need::Home,
    Need::Battery,
];
const LOOK: &[Need] = &[
    Need::Trusted,
    Need::Link,
    Need::Ours,
    Need::Armed,
    Need::InAir,
    Need::Local,
    Need::Home,
    Need::Battery,
    Need::Vision,
];
const NAVIGATE: &[Need] = &[
    Need::Trusted,
    Need::Link,
    Need::Ours,
    Need::Armed,
    Need::InAir,
    Need::Global,
    Need::Local,
    Need::Home,
    Need::Battery,
];
const CM: &[Range] = &[clamp("cm", 10.0, 300.0)];
const TURN: &[Range] = &[clamp("deg", 1.0, 90.0)];
const CAMERA: &[Need] = &[Need::Trusted, Need::Link, Need::Camera];

macro_rules! table {
    ($($tool:literal $effect:ident $category:literal $timeout:literal $ranges:expr, $needs:expr;)*) => {
        &[$(Row {
            tool: $tool,
            effect: Effect::$effect,
            category: $category,
            timeout_s: $timeout,
            ranges: $ranges,
            needs: $needs,
        },)*]
    };
}

/// Every tool.
pub(crate) fn rows() -> &'static [Row] {
    ROWS
}

#[rustfmt::skip]
static ROWS: &[Row] = table! {
    "arm"         Motion "lifecycle" 12 &[], &[Need::Trusted, Need::Link, Need::Ours, Need::OnGround, Need::Preflight, Need::Battery];
    "disarm"      Safe   "lifecycle" 12 &[], &[Need::Trusted, Need::Link, Need::OnGround];
    "takeoff"     Motion "lifecycle" 60 &[clamp("alt_m", 1.0, 30.0)],
        &[Need::Trusted, Need::Link, Need::Ours, Need::Armed, Need::Global, Need::Local, Need::Home, Need::NotInAir, Need::Battery];
    "land"        Safe   "lifecycle" 150 &[], &[Need::Trusted, Need::Link];
    "rtl"         Safe   "lifecycle" 420 &[], &[Need::Trusted, Need::Link, Need::InAir, Need::Home];
    "set_yaw"     Motion "motion" 20 &[clamp("deg", -180.0, 180.0)], MOVE;
    "turn_cw"     Motion "motion" 20 TURN, MOVE;
    "turn_ccw"    Motion "motion" 20 TURN, MOVE;
    "move_forward" Motion "motion" 30 CM, MOVE;
    "move_left"   Motion "motion" 30 CM, MOVE;
    "move_right"  Motion "motion" 30 CM, MOVE;
    "move_up"     Motion "motion" 30 CM, MOVE;
    "move_down"   Motion "motion" 30 CM, MOVE;
    "hold"        Safe   "motion" 15 &[clamp("ms", 0.0, 5000.0)], &[Need::Trusted, Need::Link, Need::InAir];
    "goto_gps"    Motion "navigation" 420 &[reject("lat", -90.0, 90.0), reject("lon", -180.0, 180.0), clamp("yaw_deg", -180.0, 180.0)], NAVIGATE;
    "goto_local"  Motion "navigation" 180 &[clamp("down_m", -30.0, -0.5), clamp("yaw_deg", -180.0, 180.0)], MOVE;
    "follow_path" Motion "navigation" 900 &[clamp("cruise_mps", 0.5, 8.0)], NAVIGATE;
    "is_visible"  Read   "perception" 5 &[reject("conf_min", 0.0, 1.0)], &[Need::Vision];
    "object_pose" Read   "perception" 5 &[], &[Need::Vision];
    "scene_free_ahead" Read "perception" 5 &[clamp("range_m", 0.5, 10.0)], &[];
    "count_objects" Read "perception" 5 &[], &[Need::Vision];
    "safe_approach_until" Motion "policy" 150 &[reject("stop_dist_m", 0.3, 3.0), clamp("step_cm", 10.0, 300.0)], LOOK;
    "scan"        Motion "policy" 120 &[clamp("step_deg", 5.0, 45.0), clamp("max_steps", 1.0, 12.0)], LOOK;
    "orient_to_object" Motion "policy" 75 &[reject("min", 0.0, 1.0), reject("max", 0.0, 1.0), clamp("micro_deg", 1.0, 45.0)], LOOK;
    "track_object" Motion "policy" 45 &[clamp("horizon_s", 0.5, 30.0)], LOOK;
    "replan"      Write  "policy" 5 &[], &[];
    "vehicle_health" Read "telemetry" 5 &[], &[];
    "battery_status" Read "telemetry" 5 &[], &[];
    "vehicle_state" Read "telemetry" 5 &[], &[];
    "log"         Read   "telemetry" 5 &[], &[];
    "capture_photo" Write "camera" 15 &[], CAMERA;
    "start_video" Write  "camera" 30 &[], CAMERA;
    "stop_video"  Write  "camera" 30 &[], CAMERA;
    "emergency_brake" Stop "safety" 10 &[], &[];
};
