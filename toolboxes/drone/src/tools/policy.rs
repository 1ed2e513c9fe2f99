//! Policies: bounded loops of guarded steps within one call.
//!
//! Every step uses a picture from after the last move and checks the guards and limits again. A cancelled call ends
//! between two steps. Read [`scan`] first.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;
use tokio::time::Instant;

use super::{motion, perception};
use crate::answer::{Outcome, Reply};
use crate::geo::{from_body, wrap_deg};
use crate::guard::{self, Leg, Pace, Refusal, Row, refuse, whole};
use crate::scene::Detection;
use crate::vehicle::{Call, Flying, Target};

/// How long a step waits for a picture that is younger than the last move.
const PICTURE: Duration = Duration::from_millis(1500);
/// Consecutive pictures without the object before a policy gives up.
pub(super) const LOST: u32 = 3;
/// Most turns of [`orient`] and of an approach.
pub(super) const TURNS: u64 = 8;
/// Half the field of view of a usual camera, degrees: the first estimate of a turn from the object's place in the
/// picture.
pub(super) const HALF_VIEW_DEG: f64 = 30.0;

/// Half the vertical field of view of a usual camera, degrees, as px4-sim and its scene feeder have.
pub(super) const HALF_HEIGHT_DEG: f64 = 22.5;
/// An object in this part of the picture, from the top or the bottom edge, is about to leave it because of its height.
const EDGE: f64 = 0.25;

/// What to do about the height of an object that was last seen at this place of the picture; `None` if height is not why it
/// left. The camera looks level: near an object that is higher or lower, the picture does not show it any more.
pub(super) fn height_hint(y: f64, dist_m: Option<f64>) -> Option<String> {
    let (edge, tool) = match y {
        y if y < EDGE => ("top", "move_up"),
        y if y > 1.0 - EDGE => ("bottom", "move_down"),
        _ => return None,
    };
    let off_m = dist_m.map(|dist_m| {
        let angle = ((y - 0.5).abs() * 2.0 * HALF_HEIGHT_DEG).to_radians();
        dist_m * angle.sin()
    });
    let cm = off_m.map_or(50.0, |metres| (metres * 10.0).round() * 10.0);
    Some(format!(
        "it was last at the {edge} of the picture, so it left because of its height: {tool} {:.0}, then try again",
        cm.clamp(10.0, 300.0)
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScanArgs {
    /// Such as `red cup`.
    object: String,
    /// Degrees of a clockwise step, 5 to 45.
    #[serde(default = "default_step_deg", deserialize_with = "whole")]
    #[schemars(with = "i64")]
    step_deg: f64,
    /// Maximum number of turns, 1 to 12.
    #[serde(default = "default_max_steps", deserialize_with = "whole")]
    #[schemars(with = "i64")]
    max_steps: f64,
}

fn default_step_deg() -> f64 {
    30.0
}

fn default_max_steps() -> f64 {
    12.0
}

/// The detection of an object in the next picture taken after `moment`.
pub(super) async fn detect(call: &Call, object: &str, moment: Instant) -> Result<Option<Detection>, Refusal> {
    call.still_may()?;
    if !call.vehicle.scene.after(moment, PICTURE).await {
        return refuse(
            "vision_unavailable",
            "no new picture has come from vision within 1.5 s",
        );
    }
    perception::find(call, object, perception::CONF_MIN)
}

pub(crate) async fn scan(call: &Call, row: &Row, args: ScanArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let object = perception::name("object", &args.object)?;
    let step = row.number("step_deg", args.step_deg, &mut adjusted)?;
    let most = row.number("max_steps", args.max_steps, &mut adjusted)?;
    call.vehicle
        .change_flight(|flight| flight.goal = Some(format!("find {object}")));
    let answer = |steps: u64, found: bool| {
        let msg = if found {
            format!("{object} found after {steps} turns")
        } else {
            format!("{object} not found; {}", unseen(call, object))
        };
        let reply = if found {
            Reply::done(msg)
        } else {
            Reply::failed("not_found", msg)
        };
        reply.with("found", found).with("steps", steps)
    };
    let mut moment = Instant::now();
    let mut steps = 0;
    loop {
        let seen = detect(call, object, moment).await;
        match seen {
            Err(refusal) => {
                return Ok(Reply::from(refusal)
                    .with("found", false)
                    .with("steps", steps)
                    .clamped(adjusted));
            }
            Ok(Some(_)) => return Ok(answer(steps, true).clamped(adjusted)),
            Ok(None) => {}
        }
        if steps as f64 >= most || step * steps as f64 >= 360.0 {
            return Ok(answer(steps, false).clamped(adjusted));
        }
        call.progress(steps as f64 / most, &format!("turn {} of {most:.0}", steps + 1));
        if let Err(refusal) = motion::turn(call, step).await {
            return Ok(Reply::from(refusal)
                .with("found", false)
                .with("steps", steps)
                .clamped(adjusted));
        }
        steps += 1;
        moment = Instant::now();
    }
}

/// Why a turn around may not have shown an object, and what to do.
fn unseen(call: &Call, object: &str) -> String {
    let last = call.vehicle.flight().last_detection;
    let seen_at_edge = last
        .filter(|(name, _)| name == object)
        .and_then(|(_, seen)| height_hint(seen.y, seen.distance()));
    seen_at_edge.unwrap_or_else(|| {
        let height = call.vehicle.telemetry().pose().map_or(String::new(), |pose| {
            format!(" from {:.1} m", pose.alt_m)
        });
        format!(
            "the camera looks level{height} and sees about 0.4 m up and down per metre of distance: move_up 100 or move_down \
             50, then scan again"
        )
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrientArgs {
    /// Such as `red cup`.
    object: String,
    /// The part of the picture that counts as its middle; default 0.4 to 0.6.
    #[serde(default)]
    center_band: Option<Band>,
    /// Degrees of a turn to either side, 1 to 45.
    #[serde(default = "default_micro_deg", deserialize_with = "whole")]
    #[schemars(with = "i64")]
    micro_deg: f64,
}

/// Part of the picture, 0 is its left edge and 1 its right one.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Band {
    /// Left edge.
    min: f64,
    /// Right edge.
    max: f64,
}

fn default_micro_deg() -> f64 {
    15.0
}

pub(crate) async fn orient(call: &Call, row: &Row, args: OrientArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let object = perception::name("object", &args.object)?;
    let band = args.center_band.unwrap_or(Band { min: 0.4, max: 0.6 });
    let min = row.number("min", band.min, &mut adjusted)?;
    let max = row.number("max", band.max, &mut adjusted)?;
    if min >= max {
        return refuse(
            "out_of_range",
            format!("center_band {min} to {max}: min has to be smaller than max"),
        );
    }
    let micro = row.number("micro_deg", args.micro_deg, &mut adjusted)?;
    let done = centre(call, object, min, max, micro).await;
    let (steps, reply) = match done {
        (steps, Ok(x)) => (
            steps,
            Reply::done(format!("{object} is at x {x:.2}")).with("centered", true),
        ),
        (steps, Err(refusal)) => (steps, Reply::from(refusal).with("centered", false)),
    };
    Ok(reply.with("steps", steps).clamped(adjusted))
}

/// Turns until the object's x is between `min` and `max`. Returns the number of turns and the x.
async fn centre(call: &Call, object: &str, min: f64, max: f64, micro: f64) -> (u64, Result<f64, Refusal>) {
    let mut lost = 0;
    let mut moment = Instant::now();
    let mut steps = 0;
    loop {
        let seen = match detect(call, object, moment).await {
            Ok(seen) => seen,
            Err(refusal) => return (steps, Err(refusal)),
        };
        moment = Instant::now();
        let Some(seen) = seen else {
            lost += 1;
            if lost >= LOST {
                return (
                    steps,
                    refuse("not_found", format!("{object} is not in the picture: call scan")),
                );
            }
            continue;
        };
        lost = 0;
        if (min..=max).contains(&seen.x) {
            return (steps, Ok(seen.x));
        }
        if steps >= TURNS {
            return (
                steps,
                refuse(
                    "not_centered",
                    format!("{object} is at x {:.2} after {TURNS} turns", seen.x),
                ),
            );
        }
        let sign = if seen.x > max { 1.0 } else { -1.0 };
        // Turns by the estimated angle, at most by `micro_deg`. The angle stays large when the object changes sides:
        // for a vehicle that drifts half a metre, a near object moves from side to side.
        let looks = ((seen.x - (min + max) / 2.0).abs() * 2.0 * HALF_VIEW_DEG).max(1.0);
        call.progress(
            steps as f64 / TURNS as f64,
            &format!("{object} is at x {:.2}", seen.x),
        );
        if let Err(refusal) = motion::turn(call, sign * micro.min(looks)).await {
            return (steps, Err(refusal));
        }
        steps += 1;
        moment = Instant::now();
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrackArgs {
    /// Such as `person`.
    object: String,
    /// Seconds, 0.5 to 30.
    horizon_s: f64,
}

/// Turning rate of tracking, degrees per second.
const TRACK_DPS: f64 = 20.0;
/// Sideways speed of tracking, metres per second.
const TRACK_MPS: f64 = 0.3;
/// Greatest distance of tracking from its start, metres.
const TRACK_AWAY_M: f64 = 2.0;

pub(crate) async fn track(call: &Call, row: &Row, args: TrackArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let object = perception::name("object", &args.object)?;
    let horizon = row.number("horizon_s", args.horizon_s, &mut adjusted)?;
    call.vehicle
        .change_flight(|flight| flight.goal = Some(format!("track {object}")));
    let flying = Flying::new(call);
    let start = flying.take_over().await?;
    let tracked = follow(call, &flying, start, object, Duration::from_secs_f64(horizon)).await;
    let here = flying.pose()?;
    // Tracking always ends in a hover.
    if call.still_may().is_ok() {
        flying.stay().await;
    }
    call.vehicle
        .change_flight(|flight| flight.turned(wrap_deg(here.yaw_deg - start.yaw_deg).abs()));
    let tracked = tracked.map(|()| format!("{object} was tracked for {horizon:.1} s"));
    Ok(Reply::from(tracked).clamped(adjusted))
}

async fn follow(
    call: &Call,
    flying: &Flying<'_>,
    start: crate::guard::Pose,
    object: &str,
    horizon: Duration,
) -> Result<(), Refusal> {
    let clock = call.vehicle.clock;
    let (began, mut seen_at, mut last) = (Instant::now(), Instant::now(), Instant::now());
    let mut target = Target {
        ned: start.ned,
        yaw_deg: start.yaw_deg,
    };
    while clock.since(began) < horizon {
        flying.allowed(target)?;
        let passed = clock.since(last).as_secs_f64().min(0.5);
        last = Instant::now();
        match perception::find(call, object, perception::CONF_MIN)? {
            None if clock.since(seen_at) > Duration::from_secs(2) => {
                return refuse("not_found", format!("{object} was lost"));
            }
            None => {}
            Some(seen) => {
                seen_at = Instant::now();
                let off = seen.x - 0.5;
                if off.abs() > 0.05 {
                    target.yaw_deg =
                        wrap_deg(target.yaw_deg + (off * 90.0).clamp(-TRACK_DPS, TRACK_DPS) * passed);
                }
                if off.abs() > 0.25 {
                    let [north, east] = from_body(0.0, off.signum() * TRACK_MPS * passed, target.yaw_deg);
                    let next = [target.ned[0] + north, target.ned[1] + east, target.ned[2]];
                    let away = crate::geo::distance(next, start.ned);
                    let (facts, config) = (call.vehicle.facts(), &call.vehicle.config);
                    // Part of a longer leg: the vehicle moves already.
                    let leg = Leg::new(target.ned, next, Pace::even(TRACK_MPS)).after(TRACK_AWAY_M, 0.0);
                    let inside = guard::way(&facts, &config.flight_limits, &config.fence, &leg).is_ok();
                    // Farther away it only turns.
                    if away < TRACK_AWAY_M && inside {
                        target.ned = next;
                    }
                }
            }
        }
        flying.point(target).await?;
        call.progress(
            clock.since(began).as_secs_f64() / horizon.as_secs_f64(),
            "tracking",
        );
        clock.sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplanArgs {
    /// Why the last plan failed.
    reason: String,
}

pub(crate) async fn replan(call: &Call, _: &Row, args: ReplanArgs) -> Outcome {
    let reason = args.reason.trim();
    if reason.is_empty() || reason.chars().count() > 500 {
        return refuse("out_of_range", "reason: expected 1 to 500 characters");
    }
    let most = call.vehicle.config.flight_limits.max_replans;
    if call.vehicle.flight().replans >= most {
        return refuse(
            "replan_limit",
            format!("replanned {most} times since take-off: land, or return to launch"),
        );
    }
    let plan_id = uuid::Uuid::new_v4().to_string();
    call.vehicle.change_flight(|flight| {
        flight.plan_id = Some(plan_id.clone());
        flight.replans += 1;
        flight.rotation_accum_deg = 0.0;
        flight.forward_accum_m = 0.0;
    });
    call.vehicle.log.write(
        "replan",
        || json!({"call_id": call.id, "plan_id": plan_id, "reason": reason}),
    );
    let branches = [
        "scan with a smaller step_deg",
        "move_up or move_down and scan again",
        "goto_local and scan from there",
        "rtl",
    ];
    Ok(Reply::done("a new plan with new budgets")
        .with("plan_id", plan_id)
        .with("branches", branches))
}
