//! Arm, take off, land, return, disarm, and the brake.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use super::arguments::NoArgs;
use crate::answer::{Outcome, Reply};
use crate::guard::{self, Health, Leg, Mode, Pace, Refusal, Row, refuse};
use crate::vehicle::{BrakeOutcome, Call, Command, Telemetry};

/// A vehicle that comes to rest lower than this below the requested height has not finished its take-off, metres. PX4
/// ends a take-off 0.8 m below its height.
const SETTLES_LOW_M: f64 = 0.9;
/// A take-off that ends this close to its height is at it, metres.
const AT_HEIGHT_M: f64 = 0.3;

pub(crate) async fn arm(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    if call.vehicle.telemetry().armed == Some(true) {
        return Ok(Reply::done("already armed"));
    }
    // A vehicle that is armed in an autonomous mode takes off at once: another party may have requested a take-off, and
    // mavsdk_server repeats an old setpoint while the mode is offboard. A manual mode is left only where the vehicle
    // does not arm in it.
    let telemetry = call.vehicle.telemetry();
    let armable = telemetry.health.is_some_and(|health| health.armable);
    let stays = |mode: Mode| mode.is_calm() || mode.is_manual() && armable;
    if !telemetry.mode.is_some_and(stays) {
        call.change_mode(Command::Hold, 3).await?;
    }
    let words = call.vehicle.telemetry().texts_so_far;
    let mut last = None;
    for attempt in 0..3 {
        if attempt > 0 {
            // Shortly after boot PX4 denies arming for a few seconds.
            call.pause(Duration::from_millis(1500)).await?;
        }
        match call.send(Command::Arm).await {
            Ok(()) => {
                let armed = call
                    .wait(Duration::from_secs(3), |telemetry| {
                        (telemetry.armed == Some(true)).then_some(())
                    })
                    .await?;
                if armed.is_some() {
                    return Ok(Reply::done("armed"));
                }
                last = Some(Refusal {
                    code: "unconfirmed",
                    msg: "arm was acknowledged, but the vehicle did not arm".to_string(),
                });
            }
            Err(refusal) if matches!(refusal.code, "denied" | "unconfirmed") => last = Some(refusal),
            Err(refusal) => return Err(refusal),
        }
    }
    let refusal = last.unwrap_or(Refusal {
        code: "denied",
        msg: "arm".to_string(),
    });
    let facts = call.vehicle.facts();
    let checks = guard::failed_checks(&facts).map_or(String::new(), |checks| format!("; {checks}"));
    let missing = facts.health.map(Health::missing).unwrap_or_default();
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!("; not well: {}", missing.join(", "))
    };
    refuse(
        refusal.code,
        format!("{}{missing}{checks}{}", refusal.msg, call.quoted_since(words)),
    )
}

pub(crate) async fn disarm(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    if call.vehicle.telemetry().armed == Some(false) {
        return Ok(Reply::done("already disarmed"));
    }
    let words = call.vehicle.telemetry().texts_so_far;
    call.send(Command::Disarm).await?;
    disarmed(call, Duration::from_secs(5), words).await
}

/// Disarms a vehicle that stands with its motors on, unless another party has taken over. Best effort: the caller
/// reports an error already, and PX4 disarms by itself 10 s after arming.
pub(crate) async fn disarm_standing(call: &Call) {
    let telemetry = call.vehicle.telemetry();
    if telemetry.armed == Some(true) && telemetry.on_ground() && call.vehicle.overridden().is_none() {
        let words = telemetry.texts_so_far;
        if call.send(Command::Disarm).await.is_ok() {
            let _ = disarmed(call, Duration::from_secs(5), words).await;
        }
    }
}

async fn disarmed(call: &Call, within: Duration, words: u64) -> Outcome {
    let seen = call
        .wait(within, |heard| (heard.armed == Some(false)).then_some(()))
        .await?;
    match seen {
        Some(()) => Ok(Reply::done("disarmed")),
        None => refuse(
            "unconfirmed",
            format!("the vehicle did not disarm{}", call.quoted_since(words)),
        ),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeoffArgs {
    /// Above ground, 1 to 30.
    alt_m: f64,
    /// Arm the motors first.
    #[serde(default)]
    #[allow(dead_code, reason = "the plan reads it: arming is a step of its own")]
    arm: bool,
}

pub(crate) async fn takeoff(call: &Call, row: &Row, args: TakeoffArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let altitude = row.number("alt_m", args.alt_m, &mut Vec::new())?;
    let vehicle = &call.vehicle;
    let (facts, limits) = (vehicle.facts(), &vehicle.config.flight_limits);
    let (Some(pose), Some(home)) = (facts.pose, facts.home) else {
        return refuse("stale_telemetry", "the position is not known");
    };
    let band = guard::takeoff_band(row, limits);
    if args.alt_m > limits.max_alt_m {
        // A little above the tool's own range it is clamped, like every number of this tool; above the ceiling it is another
        // kind of height.
        call.judged(
            "height",
            guard::height("alt_m", args.alt_m, (band.min, band.max), home),
        )?;
    }
    let up = [pose.ned[0], pose.ned[1], home.down_m - altitude];
    let leg = Leg::new(up, up, Pace::TAKEOFF);
    call.judged("way", guard::way(&facts, limits, &vehicle.config.fence, &leg))?;
    let alt_m = band.apply(args.alt_m, &mut adjusted)?;
    vehicle.change_flight(|flight| flight.begin());
    call.send(Command::TakeoffAltitude(alt_m)).await?;
    let words = vehicle.telemetry().texts_so_far;
    let risen = match call.change_mode(Command::Takeoff, 2).await {
        Ok(()) => rise(call, pose.alt_m, alt_m, words).await,
        Err(refusal) => Err(refusal),
    };
    match risen {
        Ok(height) => Ok(Reply::done(hovers(height, alt_m)).clamped(adjusted)),
        Err(refusal) => {
            // Without a brake the vehicle would go on climbing.
            call.leave_at_rest(&refusal).await;
            Ok(Reply::from(refusal).clamped(adjusted))
        }
    }
}

/// Where the vehicle hovers, and how far that is from the height asked for.
fn hovers(height: f64, alt_m: f64) -> String {
    let short = alt_m - height;
    let (word, tool) = if short > 0.0 {
        ("below", "move_up")
    } else {
        ("above", "move_down")
    };
    if short.abs() <= AT_HEIGHT_M {
        return format!("hovering at {height:.1} m");
    }
    let cm = (short.abs() * 10.0).round() * 10.0;
    format!(
        "hovering at {height:.1} m, {:.1} m {word} the requested {alt_m:.1} m: call {tool} {cm:.0} to correct it",
        short.abs()
    )
}

/// Waits until the vehicle hovers at the height and returns that height. The flight mode alone does not prove a
/// take-off.
async fn rise(call: &Call, from: f64, alt_m: f64, words: u64) -> Result<f64, Refusal> {
    let limit = Duration::from_secs_f64(20.0 + alt_m * 2.0);
    let risen = call
        .wait(limit, |heard| {
            let pose = heard.pose()?;
            call.progress((pose.alt_m - from).max(0.0) / alt_m, "climbing");
            let there = pose.alt_m >= alt_m - SETTLES_LOW_M && heard.in_air == Some(true);
            let fell = heard.armed == Some(false);
            (there && heard.mode != Some(Mode::Takeoff) && pose.speed() < 0.9 || fell).then_some(!fell)
        })
        .await?;
    let height = call.vehicle.telemetry().pose().map(|pose| pose.alt_m);
    match risen {
        Some(true) => Ok(height.unwrap_or(alt_m)),
        Some(false) => refuse(
            "not_armed",
            format!("the vehicle disarmed itself{}", call.quoted_since(words)),
        ),
        None => refuse(
            "not_reached",
            format!(
                "{:.1} m after {:.0} s{}",
                height.unwrap_or(0.0),
                limit.as_secs_f64(),
                call.quoted_since(words)
            ),
        ),
    }
}

pub(crate) async fn land(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let telemetry = call.vehicle.telemetry();
    if telemetry.on_ground() && telemetry.armed == Some(false) {
        return Ok(Reply::done("already on the ground and disarmed"));
    }
    let words = telemetry.texts_so_far;
    call.change_mode(Command::Land, 3).await?;
    let height = telemetry.pose().map_or(30.0, |pose| pose.alt_m.max(0.0));
    down(call, Duration::from_secs_f64(30.0 + height / 0.5), height, words).await
}

/// Waits until the vehicle stands and is disarmed.
async fn down(call: &Call, within: Duration, height: f64, words: u64) -> Outcome {
    let landed = call
        .wait(within, |heard: &Telemetry| {
            if let Some(pose) = heard.pose() {
                call.progress(1.0 - pose.alt_m.max(0.0) / height.max(1.0), "coming down");
            }
            heard.on_ground().then_some(())
        })
        .await?;
    if landed.is_none() {
        return refuse(
            "not_reached",
            format!(
                "not on the ground after {:.0} s{}",
                within.as_secs_f64(),
                call.quoted_since(words)
            ),
        );
    }
    // PX4 disarms 2 s after it detects the ground.
    let seen = call
        .wait(Duration::from_secs(6), |heard| {
            (heard.armed == Some(false)).then_some(())
        })
        .await?;
    if seen.is_some() {
        return Ok(Reply::done("landed and disarmed"));
    }
    call.send(Command::Disarm).await?;
    disarmed(call, Duration::from_secs(5), words)
        .await
        .map(|_| Reply::done("landed and disarmed"))
}

pub(crate) async fn rtl(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    let telemetry = call.vehicle.telemetry();
    let words = telemetry.texts_so_far;
    call.change_mode(Command::Return, 3).await?;
    let (away, height) = match (telemetry.pose(), telemetry.home) {
        (Some(pose), Some(home)) => (
            (pose.ned[0] - home.north_m).hypot(pose.ned[1] - home.east_m),
            pose.alt_m.max(30.0),
        ),
        _ => (call.vehicle.config.flight_limits.max_leg_m, 30.0),
    };
    let within = Duration::from_secs_f64(60.0 + away / 3.0 + 2.0 * height / 0.7);
    let down = down(call, within, height, words).await?;
    came_home(&call.vehicle.telemetry(), telemetry.launch, down)
}

/// Checks that the vehicle landed near its take-off point: a failsafe may land it elsewhere, and PX4 may have rally
/// points.
fn came_home(landed: &Telemetry, launch: Option<(f64, f64)>, down: Reply) -> Outcome {
    let msg = match (launch, landed.pose()) {
        (None, _) => format!("returned: {}; the take-off position is not known", down.msg),
        (Some(_), None) => {
            return refuse(
                "unconfirmed",
                format!("{}; telemetry does not show where", down.msg),
            );
        }
        (Some((lat, lon)), Some(pose)) => {
            let away = pose.away_from(lat, lon);
            if away > guard::HOME_M {
                return refuse(
                    "not_reached",
                    format!("{}, but {away:.0} m from the take-off position", down.msg),
                );
            }
            format!("returned: {}", down.msg)
        }
    };
    Ok(Reply { msg, ..down })
}

/// For callers without a service; the service itself stops the toolbox for this tool.
pub(crate) async fn emergency_brake(call: &Call, _: &Row, _: NoArgs) -> Outcome {
    match call.vehicle.brake(true, &call.id) {
        BrakeOutcome::Nothing(why) => Ok(Reply::done(format!("nothing to stop: {why}"))),
        BrakeOutcome::Foreign(taken) => refuse(taken.code(), taken.how),
        BrakeOutcome::Unreachable(why) => refuse("link_down", why),
        BrakeOutcome::Sent(_, acknowledgement) => match acknowledgement.await {
            Ok(Ok(())) => Ok(Reply::done("the vehicle has acknowledged the brake")),
            Ok(Err(why)) => refuse("unconfirmed", why),
            Err(_) => refuse("closed", "the toolbox is closing"),
        },
    }
}
