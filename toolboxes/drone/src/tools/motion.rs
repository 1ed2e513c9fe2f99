//! Small moves and turns: closed loop, relative to the present position.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use crate::answer::{Outcome, Reply};
use crate::geo::{Ned, compass_deg, distance, from_body, wrap_deg};
use crate::guard::{self, Adjustment, Leg, Mode, Pace, Pose, Refusal, Row, refuse, whole};
use crate::scene::Side;
use crate::vehicle::{Call, Command, Flying, Target};

/// A vehicle slower than this is told to hold its position, metres per second.
const HELD_MPS: f64 = 0.9;
/// How long a vehicle may take to come to rest, vehicle time: PX4's simulation took 6.2 s from 2.5 m/s to 0.2 m/s.
const COMES_TO_REST: Duration = Duration::from_secs(6);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveArgs {
    /// Centimetres, 10 to 300.
    #[serde(deserialize_with = "whole")]
    #[schemars(with = "i64")]
    cm: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnArgs {
    /// Degrees in that direction, 1 to 90.
    deg: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct YawArgs {
    /// 0 is north, 90 east (clockwise).
    deg: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HoldArgs {
    /// Milliseconds, 0 to 5000.
    #[serde(deserialize_with = "whole")]
    #[schemars(with = "i64")]
    ms: f64,
}

pub(crate) async fn set_yaw(call: &Call, _: &Row, args: YawArgs) -> Outcome {
    let deg = guard::heading("deg", args.deg)?;
    let flying = Flying::new(call);
    let start = flying.pose()?;
    let turned = wrap_deg(deg - start.yaw_deg);
    let limits = &call.vehicle.config.flight_limits;
    call.judged(
        "rotation",
        guard::rotation(&call.vehicle.facts(), limits, turned.abs()),
    )?;
    let arrived = flying.turn(deg).await;
    count_turn(call, start.yaw_deg, turned, arrived.is_ok());
    let done = arrived.map(|pose| format!("heading {:.0} deg", compass_deg(pose.yaw_deg, 0)));
    Ok(Reply::from(done))
}

pub(crate) async fn turn_cw(call: &Call, row: &Row, args: TurnArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let deg = row.number("deg", args.deg, &mut adjusted)?;
    Ok(turn(call, deg)
        .await
        .unwrap_or_else(Reply::from)
        .clamped(adjusted))
}

pub(crate) async fn turn_ccw(call: &Call, row: &Row, args: TurnArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let deg = row.number("deg", args.deg, &mut adjusted)?;
    Ok(turn(call, -deg)
        .await
        .unwrap_or_else(Reply::from)
        .clamped(adjusted))
}

/// Turns in place, clockwise when positive, and counts the turn against the limit.
pub(super) async fn turn(call: &Call, deg: f64) -> Outcome {
    let limits = &call.vehicle.config.flight_limits;
    call.judged(
        "rotation",
        guard::rotation(&call.vehicle.facts(), limits, deg.abs()),
    )?;
    let flying = Flying::new(call);
    let start = flying.pose()?;
    let arrived = flying.turn(wrap_deg(start.yaw_deg + deg)).await;
    count_turn(call, start.yaw_deg, deg, arrived.is_ok());
    let side = if deg < 0.0 { "left" } else { "right" };
    Ok(Reply::done(format!(
        "turned {:.0} deg to the {side}, heading {:.0} deg",
        deg.abs(),
        compass_deg(arrived?.yaw_deg, 0)
    )))
}

/// Counts a turn: in full when it was made, otherwise as far as telemetry shows it.
fn count_turn(call: &Call, from: f64, deg: f64, made: bool) {
    let turned_deg = call
        .vehicle
        .telemetry()
        .pose()
        .map_or(deg.abs(), |pose| wrap_deg(pose.yaw_deg - from).abs());
    let turned = if made {
        deg.abs()
    } else {
        turned_deg.min(deg.abs())
    };
    call.vehicle.change_flight(|flight| flight.turned(turned));
}

pub(crate) async fn move_forward(call: &Call, row: &Row, args: MoveArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let metres = row.number("cm", args.cm, &mut adjusted)? / 100.0;
    let limits = &call.vehicle.config.flight_limits;
    let margin_m = guard::AHEAD_MARGIN_M.max(limits.braking.beyond_target(limits.step_mps));
    let moved = forward(call, metres, margin_m).await;
    Ok(reply_of_move(moved, "forward").clamped(adjusted))
}

/// Moves the setpoint forward by `metres`, with `margin_m` kept free beyond it, and counts the distance. The bearing is
/// close to the present heading.
pub(super) async fn step_ahead(
    call: &Call,
    bearing_deg: f64,
    metres: f64,
    margin_m: f64,
) -> Result<(), Refusal> {
    let (facts, limits) = (call.vehicle.facts(), &call.vehicle.config.flight_limits);
    call.judged("forward", guard::forward(&facts, limits, metres))?;
    let mut flying = Flying::new(call);
    flying.keep_m = Some((Side::Ahead, margin_m * 0.5));
    let (start, from) = (flying.pose()?, flying.place()?);
    let turned = wrap_deg(bearing_deg - start.yaw_deg);
    call.judged("rotation", guard::rotation(&facts, limits, turned.abs()))?;
    let [north, east] = from_body(metres, 0.0, bearing_deg);
    let target = [from[0] + north, from[1] + east, from[2]];
    // The free distance is measured from the vehicle, which may be behind its setpoint.
    let ahead_m = distance(start.ned, target).max(metres);
    call.judged("ahead", guard::ahead(&facts, ahead_m, margin_m))?;
    let leg = Leg::new(start.ned, target, Pace::even(flying.speed_mps)).moving(&start);
    call.judged(
        "way",
        guard::way(&facts, limits, &call.vehicle.config.fence, &leg),
    )?;
    let arrived = flying
        .to(Target {
            ned: target,
            yaw_deg: bearing_deg,
        })
        .await;
    count_turn(call, start.yaw_deg, turned, arrived.is_ok());
    call.vehicle.change_flight(|flight| flight.moved_forward(metres));
    arrived.map(drop)
}

/// Moves forward with `margin_m` kept free beyond the target, and counts the distance. Returns the metres moved and the
/// metres off the target.
async fn forward(call: &Call, metres: f64, margin_m: f64) -> Result<(f64, f64), Refusal> {
    let (facts, limits) = (call.vehicle.facts(), &call.vehicle.config.flight_limits);
    call.judged("forward", guard::forward(&facts, limits, metres))?;
    let mut flying = Flying::new(call);
    flying.keep_m = Some((Side::Ahead, margin_m * 0.5));
    let start = flying.pose()?;
    let overruns_m = overruns(call, &start, metres);
    call.judged("ahead", guard::ahead(&facts, metres, margin_m.max(overruns_m)))?;
    let result = by(call, &flying, [metres, 0.0, 0.0]).await;
    // Only the forward component counts: a hovering vehicle drifts to all sides.
    let ahead = from_body(1.0, 0.0, start.yaw_deg);
    let moved = call.vehicle.telemetry().pose().map_or(metres, |pose| {
        (pose.ned[0] - start.ned[0]) * ahead[0] + (pose.ned[1] - start.ned[1]) * ahead[1]
    });
    call.vehicle
        .change_flight(|flight| flight.moved_forward(moved.clamp(0.0, metres * 1.5)));
    result
}

/// Metres beyond a move along the heading to which the vehicle's present motion may carry it.
fn overruns(call: &Call, start: &Pose, metres: f64) -> f64 {
    let [north, east] = from_body(metres, 0.0, start.yaw_deg);
    let to = [start.ned[0] + north, start.ned[1] + east, start.ned[2]];
    let limits = &call.vehicle.config.flight_limits;
    let leg = Leg::new(start.ned, to, Pace::even(limits.step_mps)).moving(start);
    leg.overruns(limits.braking)
}

/// Moves by forward, right and down metres at constant heading. Returns the metres moved and the metres off the target.
async fn by(call: &Call, flying: &Flying<'_>, body: Ned) -> Result<(f64, f64), Refusal> {
    let vehicle = &call.vehicle;
    let start = flying.pose()?;
    let [north, east] = from_body(body[0], body[1], start.yaw_deg);
    let target = [start.ned[0] + north, start.ned[1] + east, start.ned[2] + body[2]];
    let leg = Leg::new(start.ned, target, Pace::even(flying.speed_mps)).moving(&start);
    let (facts, limits) = (vehicle.facts(), &vehicle.config.flight_limits);
    call.judged("way", guard::way(&facts, limits, &vehicle.config.fence, &leg))?;
    let arrived = flying
        .to(Target {
            ned: target,
            yaw_deg: start.yaw_deg,
        })
        .await?;
    Ok((distance(start.ned, arrived.ned), distance(target, arrived.ned)))
}

async fn sideways(call: &Call, row: &Row, args: MoveArgs, unit: Ned, word: &str) -> Outcome {
    let mut adjusted: Vec<Adjustment> = Vec::new();
    let metres = row.number("cm", args.cm, &mut adjusted)? / 100.0;
    if unit[2] > 0.0
        && let Some(clearance) = call
            .vehicle
            .telemetry()
            .clearance_m
            .filter(|seen| seen.at.elapsed() < Duration::from_secs(1))
        && clearance.value - metres < call.vehicle.config.flight_limits.min_alt_m
    {
        return refuse(
            "altitude_floor",
            format!(
                "the ground is {:.2} m below: {metres:.2} m down are too many",
                clearance.value
            ),
        );
    }
    let moved = by(call, &Flying::new(call), unit.map(|part| part * metres)).await;
    Ok(reply_of_move(moved, word).clamped(adjusted))
}

/// The answer of a move: metres moved and metres off the target.
fn reply_of_move(moved: Result<(f64, f64), Refusal>, word: &str) -> Reply {
    moved
        .map(|(moved, left)| format!("moved {moved:.2} m {word}, {left:.2} m off the target"))
        .into()
}

pub(crate) async fn move_backward(call: &Call, row: &Row, args: MoveArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let metres = row.number("cm", args.cm, &mut adjusted)? / 100.0;
    let facts = call.vehicle.facts();
    let mut flying = Flying::new(call);
    let overruns_m = overruns(call, &flying.pose()?, -metres);
    let margin_m = guard::AHEAD_MARGIN_M.max(overruns_m);
    call.judged("behind", guard::behind(&facts, metres, margin_m))?;
    flying.keep_m = Some((Side::Behind, guard::AHEAD_MARGIN_M * 0.5));
    let moved = by(call, &flying, [-metres, 0.0, 0.0]).await;
    Ok(reply_of_move(moved, "backward").clamped(adjusted))
}

pub(crate) async fn move_left(call: &Call, row: &Row, args: MoveArgs) -> Outcome {
    sideways(call, row, args, [0.0, -1.0, 0.0], "to the left").await
}

pub(crate) async fn move_right(call: &Call, row: &Row, args: MoveArgs) -> Outcome {
    sideways(call, row, args, [0.0, 1.0, 0.0], "to the right").await
}

pub(crate) async fn move_up(call: &Call, row: &Row, args: MoveArgs) -> Outcome {
    sideways(call, row, args, [0.0, 0.0, -1.0], "up").await
}

pub(crate) async fn move_down(call: &Call, row: &Row, args: MoveArgs) -> Outcome {
    sideways(call, row, args, [0.0, 0.0, 1.0], "down").await
}

pub(crate) async fn hold(call: &Call, row: &Row, args: HoldArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let ms = row.number("ms", args.ms, &mut adjusted)?;
    let held = hold_for(call, ms).await.unwrap_or_else(Reply::from);
    Ok(held.clamped(adjusted))
}

async fn hold_for(call: &Call, ms: f64) -> Outcome {
    let telemetry = call.vehicle.telemetry();
    // A command that changes nothing could still take the vehicle from a pilot who takes over right now.
    if !call.keeps_holding(&telemetry)? {
        let flies_in_hold = call.vehicle.flies_in_hold(&telemetry);
        // Leaves offboard control, too: Hold needs no further setpoints.
        call.change_mode(Command::Hold, 3).await?;
        if flies_in_hold && let Some(stop) = call.vehicle.stop_here() {
            call.change_mode(stop, 2).await?;
        }
    }
    call.pause(Duration::from_secs_f64(ms / 1000.0)).await?;
    let slow = call
        .wait(COMES_TO_REST, |telemetry| {
            // Of the two streams that report modes the later one has to know, too, that no pilot flies it any more.
            (telemetry.pose()?.speed() < HELD_MPS && telemetry.pilots_mode().is_none()).then_some(())
        })
        .await?;
    let telemetry = call.vehicle.telemetry();
    let mode = telemetry.pilots_mode().or(telemetry.mode);
    if mode != Some(Mode::Hold) {
        return refuse(
            "mode_refused",
            format!("the mode is {}", mode.map_or("UNKNOWN", Mode::name)),
        );
    }
    if slow.is_none() {
        return refuse(
            "not_reached",
            format!(
                "the mode is HOLD, and it has not shown within {} s that it stands still",
                COMES_TO_REST.as_secs()
            ),
        );
    }
    call.vehicle.arrived();
    Ok(Reply::done(format!("held for {ms:.0} ms")))
}
