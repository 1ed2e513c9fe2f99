//! The table of tools: effect, ranges of the arguments, and preconditions.
//!
//! Read [`rows`] first; the guards' verdict on a call follows from its row and the checks of its target.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::Effect;

use super::facts::{Facts, Health, Landed, Mode};
use super::limits::Limits;
use super::range::{Adjustment, HEIGHT, Range, Treatment};
use super::refusal::{Refusal, refuse};

/// A precondition of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The vehicle may be commanded.
    Trusted,
    /// Telemetry arrives.
    Link,
    /// No other party has taken over.
    Ours,
    /// Like `Ours`, for tools that bring the vehicle to safety: an operator may take it over.
    OursOrOperator,
    /// The toolbox is not in emergency stop, or the caller is an operator.
    UnlatchedOrOperator,
    /// It is a multicopter.
    Multicopter,
    /// The vehicle's arming checks pass.
    Preflight,
    OnGround,
    Armed,
    NotInAir,
    InAir,
    /// GPS and home are known.
    Global,
    /// The EKF is healthy and the pose is fresh.
    Local,
    Home,
    Battery,
    Camera,
    /// The vision data is fresh.
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
                "there is no telemetry from the vehicle".to_string()
            }),
            Self::Ours => {
                if let Some(taken) = &facts.overridden {
                    return refuse(
                        taken.code(),
                        format!(
                            "{}; motion is refused until an operator runs `ovos-tools resume`{}",
                            taken.how,
                            handover(facts.mode)
                        ),
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
            Self::OursOrOperator if facts.caller.operator => Ok(()),
            Self::OursOrOperator => Self::Ours.check(facts, limits).map_err(|refusal| Refusal {
                msg: format!(
                    "{}; until then only an operator may command it (service.operator_tools)",
                    refusal.msg
                ),
                ..refusal
            }),
            Self::UnlatchedOrOperator => {
                demand(!facts.caller.latched || facts.caller.operator, "latched", || {
                    "in emergency stop only an operator may call rtl: run `ovos-tools resume` first, or set service.operator_tools to \
                     true; land and hold work"
                        .into()
                })
            }
            Self::Multicopter => match facts.kind {
                Some(kind) if is_multicopter(kind) => Ok(()),
                Some(kind) => refuse(
                    "wrong_vehicle",
                    format!(
                        "this toolbox flies multicopters only, and the vehicle is {} (MAV_TYPE {kind})",
                        kind_name(kind)
                    ),
                ),
                None => refuse(
                    "no_telemetry",
                    "the vehicle has not reported its type (MAV_TYPE): this toolbox flies multicopters only",
                ),
            },
            Self::Preflight => preflight(facts),
            Self::OnGround => match facts.landed {
                Some(Landed::OnGround) => Ok(()),
                Some(_) => refuse("in_air", "the vehicle is not on the ground"),
                None => refuse(
                    "no_telemetry",
                    "it is not known whether the vehicle is on the ground",
                ),
            },
            Self::Armed => require_fact(facts.armed, "whether the vehicle is armed").and_then(|armed| {
                demand(armed, "not_armed", || {
                    "the vehicle is not armed: call arm first".into()
                })
            }),
            Self::NotInAir => require_fact(facts.in_air, "whether the vehicle is in the air")
                .and_then(|in_air| demand(!in_air, "in_air", || "the vehicle is in the air already".into())),
            Self::InAir => {
                require_fact(facts.in_air, "whether the vehicle is in the air").and_then(|in_air| {
                    demand(in_air, "not_in_air", || {
                        "the vehicle is not in the air: call arm and takeoff".into()
                    })
                })
            }
            Self::Global => {
                let health = require_fact(facts.health, "the vehicle's health")?;
                demand(health.global && health.home, "no_global_position", || {
                    "no global position or no home position: wait for GPS".into()
                })
            }
            Self::Local => {
                let health = require_fact(facts.health, "the vehicle's health")?;
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
                        "battery at {pct:.0} %, at least {:.0} % needed",
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

/// What has to happen before a resume, as the end of a sentence. PX4 itself may end a takeover by sticks and hold again;
/// one by the mode switch lasts until the pilot selects another mode.
fn handover(mode: Option<Mode>) -> String {
    match mode {
        Some(mode) if mode.is_manual() => format!(
            "; while a pilot flies (mode {}) that is refused: first select another mode with the remote control or the ground station, or \
             have an operator call hold",
            mode.name()
        ),
        Some(mode) => format!(
            "; that is possible now, because no pilot flies it (mode {})",
            mode.name()
        ),
        None => String::new(),
    }
}

/// Whether MAVLink's vehicle type is a multicopter: 2 quad-, 13 hexa-, 14 octo-, 15 tri-, 29 dodeca-, 35 decarotor.
fn is_multicopter(kind: u64) -> bool {
    matches!(kind, 2 | 13 | 14 | 15 | 29 | 35)
}

/// MAVLink's vehicle type in words.
fn kind_name(kind: u64) -> String {
    match kind {
        1 => "a fixed wing".to_string(),
        3 | 4 => "a helicopter".to_string(),
        7 | 8 => "a balloon or airship".to_string(),
        10 => "a ground vehicle".to_string(),
        11 => "a boat".to_string(),
        12 => "a submarine".to_string(),
        19..=25 => "a VTOL aircraft".to_string(),
        other => format!("of MAVLink's type {other}"),
    }
}

fn require_fact<T>(fact: Option<T>, what: &str) -> Result<T, Refusal> {
    fact.map_or_else(|| refuse("no_telemetry", format!("{what} is not known")), Ok)
}

fn demand(holds: bool, code: &'static str, msg: impl FnOnce() -> String) -> Result<(), Refusal> {
    if holds { Ok(()) } else { refuse(code, msg()) }
}

fn preflight(facts: &Facts) -> Result<(), Refusal> {
    let health = require_fact(facts.health, "the vehicle's health")?;
    // "armable" depends on the mode, too: after a flight PX4 may be in OFFBOARD again, which arms only while setpoints
    // arrive. `arm` leaves such a mode first, and PX4 decides then.
    let missing = Health {
        armable: health.armable || facts.mode.is_some_and(|mode| !mode.is_calm()),
        ..health
    }
    .missing();
    demand(missing.is_empty(), "preflight", || {
        format!("preflight checks fail: {}{}", missing.join(", "), reasons(facts))
    })
}

/// Why the vehicle would not arm, as the end of a sentence: its arming checks, or else its mode and last warning.
fn reasons(facts: &Facts) -> String {
    format!(
        "; {}",
        failed_checks(facts).unwrap_or_else(|| circumstances(facts))
    )
}

/// The failed arming checks, if the vehicle reports their texts.
pub(crate) fn failed_checks(facts: &Facts) -> Option<String> {
    let checks = facts.checks.as_ref()?;
    let fail = !checks.passed && !checks.problems.is_empty();
    fail.then(|| format!("in mode {}: {}", checks.mode, checks.problems.join("; ")))
}

/// Mode and last warning of a vehicle that reports no arming checks.
pub(crate) fn circumstances(facts: &Facts) -> String {
    let mode = facts.mode.map_or("UNKNOWN", Mode::name);
    let words = facts
        .last_warning
        .as_deref()
        .map_or(String::new(), |text| format!("; its last warning: {text}"));
    format!("the mode is {mode}{words}")
}

/// The row of one tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) tool: &'static str,
    pub(crate) effect: Effect,
    pub(crate) category: &'static str,
    /// Greatest duration, seconds.
    pub(crate) timeout_s: u64,
    pub(crate) ranges: &'static [Range],
    pub(crate) needs: &'static [Need],
}

impl Row {
    /// The value to use for an argument.
    ///
    /// # Errors
    /// It is not finite, or outside a range that refuses.
    pub(crate) fn number(
        &self,
        arg: &str,
        value: f64,
        adjusted: &mut Vec<Adjustment>,
    ) -> Result<f64, Refusal> {
        match self.ranges.iter().find(|range| range.arg == arg) {
            Some(range) => range.apply(value, adjusted),
            None if value.is_finite() => Ok(value),
            None => refuse("not_finite", format!("{arg}: expected a finite number")),
        }
    }

    /// Whether it commands the vehicle, which another party may be flying.
    pub(crate) fn commands(&self) -> bool {
        let ours = |need: &Need| matches!(need, Need::Ours | Need::OursOrOperator);
        self.needs.iter().any(ours)
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
        negative: None,
    }
}

/// A clamping range that refuses negative numbers with the advice `instead`.
const fn positive(arg: &'static str, min: f64, max: f64, instead: &'static str) -> Range {
    Range {
        negative: Some(instead),
        ..clamp(arg, min, max)
    }
}

const fn reject(arg: &'static str, min: f64, max: f64) -> Range {
    Range {
        arg,
        min,
        max,
        treatment: Treatment::Reject,
        negative: None,
    }
}

const MOVE: &[Need] = &[
    Need::Trusted,
    Need::Link,
    Need::Multicopter,
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
    Need::Multicopter,
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
    Need::Multicopter,
    Need::Ours,
    Need::Armed,
    Need::InAir,
    Need::Global,
    Need::Local,
    Need::Home,
    Need::Battery,
];

/// The distance of a small move; `other` names the tool for the opposite direction.
const fn cm(other: &'static str) -> Range {
    positive("cm", 10.0, 300.0, other)
}
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

/// The rows of all tools.
pub(crate) fn rows() -> &'static [Row] {
    ROWS
}

#[rustfmt::skip]
static ROWS: &[Row] = table! {
    "arm"         Motion "lifecycle" 12 &[], &[Need::Trusted, Need::Link, Need::Multicopter, Need::Ours, Need::OnGround, Need::Preflight, Need::Battery];
    "disarm"      Safe   "lifecycle" 12 &[], &[Need::Trusted, Need::Link, Need::OursOrOperator, Need::OnGround];
    "takeoff"     Motion "lifecycle" 60 &[positive("alt_m", 1.0, 30.0, HEIGHT)],
        &[Need::Trusted, Need::Link, Need::Multicopter, Need::Ours, Need::Armed, Need::Global, Need::Local, Need::Home, Need::NotInAir, Need::Battery];
    "land"        Safe   "lifecycle" 150 &[], &[Need::Trusted, Need::Link, Need::OursOrOperator];
    "rtl"         Safe   "lifecycle" 420 &[],
        &[Need::Trusted, Need::Link, Need::OursOrOperator, Need::UnlatchedOrOperator, Need::InAir, Need::Home];
    "set_yaw"     Motion "motion" 20 &[], MOVE;
    "turn_cw"     Motion "motion" 20 &[positive("deg", 1.0, 90.0, "send a positive angle to turn_ccw")], MOVE;
    "turn_ccw"    Motion "motion" 20 &[positive("deg", 1.0, 90.0, "send a positive angle to turn_cw")], MOVE;
    "move_forward" Motion "motion" 30 &[cm("send a positive distance to move_backward")], MOVE;
    "move_backward" Motion "motion" 30 &[cm("send a positive distance to move_forward")], MOVE;
    "move_left"   Motion "motion" 30 &[cm("send a positive distance to move_right")], MOVE;
    "move_right"  Motion "motion" 30 &[cm("send a positive distance to move_left")], MOVE;
    "move_up"     Motion "motion" 30 &[cm("send a positive distance to move_down")], MOVE;
    "move_down"   Motion "motion" 30 &[cm("send a positive distance to move_up")], MOVE;
    "hold"        Safe   "motion" 15 &[clamp("ms", 0.0, 5000.0)], &[Need::Trusted, Need::Link, Need::OursOrOperator, Need::InAir];
    "goto_gps"    Motion "navigation" 420 &[reject("lat", -90.0, 90.0), reject("lon", -180.0, 180.0)], NAVIGATE;
    "goto_local"  Motion "navigation" 180 &[], MOVE;
    "follow_path" Motion "navigation" 900 &[positive("cruise_mps", 0.5, 8.0, "send a positive speed")], NAVIGATE;
    "is_visible"  Read   "perception" 5 &[reject("conf_min", 0.0, 1.0)], &[Need::Vision];
    "object_pose" Read   "perception" 5 &[], &[Need::Vision];
    "scene_free_ahead" Read "perception" 5 &[positive("range_m", 0.5, 10.0, "send a positive distance")], &[];
    "count_objects" Read "perception" 5 &[], &[Need::Vision];
    "safe_approach_until" Motion "policy" 150 &[reject("stop_dist_m", 0.3, 3.0), positive("step_cm", 10.0, 300.0, "send a positive distance")], LOOK;
    "scan"        Motion "policy" 120 &[positive("step_deg", 5.0, 45.0, "send a positive angle"), clamp("max_steps", 1.0, 12.0)], LOOK;
    "orient_to_object" Motion "policy" 75 &[reject("min", 0.0, 1.0), reject("max", 0.0, 1.0), positive("micro_deg", 1.0, 45.0, "send a positive angle")], LOOK;
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
