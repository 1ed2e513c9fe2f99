//! Flights to positions: checked as a whole before they begin, and watched until they arrive.

use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

use crate::answer::{Outcome, Reply};
use crate::geo::{Ned, distance, wrap_deg};
use crate::guard::{self, Facts, Home, Leg, Mode, Pace, Pose, Refusal, Row, refuse};
use crate::vehicle::{Call, Command, Flying, Target, Waypoint};

/// A flight has arrived within this distance, metres.
const ARRIVED_M: f64 = 1.0;
/// A vehicle slower than this hovers, metres per second: PX4's simulation hovers at up to 0.84 m/s.
const HOVERS_MPS: f64 = 0.9;
/// Tolerance of the height at the end of a path, metres: the heights of a path are above PX4's own home, which PX4
/// corrects.
const PATH_HEIGHT_M: f64 = 3.5;
/// How far PX4's home may move between the upload of a path and its end, metres: PX4 1.17's simulation corrected it by
/// up to 1.5 m either way within 120 s after a take-off. A path keeps this distance from the floor and the ceiling.
const HOME_MOVES_M: f64 = 3.0;
/// How long a path that ended may take to show that the vehicle is at its end, vehicle time.
const ENDED: Duration = Duration::from_secs(4);
/// The lowest height of a flight to a GPS position, metres above home.
const LOWEST_M: f64 = 1.0;
/// Speed of goto_local, metres per second.
const LOCAL_MPS: f64 = 1.5;
/// A flight that comes no closer for this long has failed, vehicle time.
const STUCK: Duration = Duration::from_secs(5);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpsArgs {
    /// Latitude.
    lat: f64,
    /// Longitude.
    lon: f64,
    /// Above home.
    alt_m: f64,
    /// 0 is north, 90 east (clockwise). Kept when missing.
    #[serde(default)]
    yaw_deg: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalArgs {
    /// Metres north.
    north_m: f64,
    /// Metres east.
    east_m: f64,
    /// -5 is 5 m up.
    down_m: f64,
    /// 0 is north, 90 east (clockwise). Kept when missing.
    #[serde(default)]
    yaw_deg: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathArgs {
    waypoints: Vec<PathPoint>,
    /// Metres per second, 0.5 to 8.
    #[serde(default = "default_cruise")]
    cruise_mps: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathPoint {
    /// Latitude.
    lat: f64,
    /// Longitude.
    lon: f64,
    /// Above home.
    alt_m: f64,
}

fn default_cruise() -> f64 {
    3.0
}

fn pose_and_home(facts: &Facts) -> Result<(Pose, Home), Refusal> {
    match (facts.pose, facts.home) {
        (Some(pose), Some(home)) => Ok((pose, home)),
        _ => refuse("stale_telemetry", "the position is not known"),
    }
}

/// Converts a position above home to the local frame.
fn local(home: Home, lat: f64, lon: f64, alt_m: f64) -> Ned {
    let [north, east] = home.origin.local(lat, lon);
    [north, east, home.down_m - alt_m]
}

pub(crate) async fn goto_gps(call: &Call, _: &Row, args: GpsArgs) -> Outcome {
    guard::check_position(args.lat, args.lon)?;
    let vehicle = &call.vehicle;
    let (facts, limits) = (vehicle.facts(), &vehicle.config.flight_limits);
    let (pose, home) = pose_and_home(&facts)?;
    let (lowest, highest) = guard::band(limits, Pace::PX4, guard::altitude(home, pose.ned));
    let lowest = lowest.max(LOWEST_M);
    let yaw_deg = args
        .yaw_deg
        .map(|yaw| guard::heading("yaw_deg", yaw))
        .transpose()?;
    let band = (lowest, highest.max(lowest));
    let alt_m = call.judged("height", guard::height("alt_m", args.alt_m, band, home))?;
    let target = local(home, args.lat, args.lon, alt_m);
    not_too_far(limits, pose.ned, target)?;
    let leg = Leg::new(pose.ned, target, Pace::PX4).moving(&pose);
    call.judged("way", guard::way(&facts, limits, &vehicle.config.fence, &leg))?;
    call.judged("battery", guard::battery_for(&facts, limits, pose.ned, target))?;
    vehicle.change_flight(|flight| flight.goal = Some(format!("go to {:.6}, {:.6}", args.lat, args.lon)));
    let words = vehicle.telemetry().texts_so_far;
    // MAVSDK's heights are above sea level; confusing the two heights has crashed vehicles. The target is the present
    // height plus the difference, so that PX4's corrections of its home cancel out.
    let amsl_m = pose.amsl_m - pose.alt_m + alt_m;
    // Without a heading PX4 turns the nose towards the target.
    let heading = yaw_deg.unwrap_or(pose.yaw_deg);
    let goto = Command::Goto {
        lat: args.lat,
        lon: args.lon,
        amsl_m,
        yaw_deg: Some(heading),
    };
    let arrived = match call.change_mode(goto, 2).await {
        Ok(()) => approach(call, pose, target, heading, words).await,
        Err(refusal) => Err(refusal),
    };
    match &arrived {
        Ok(_) => vehicle.arrived(),
        Err(refusal) => call.leave_at_rest(refusal).await,
    }
    Ok(Reply::from(
        arrived.map(|left| format!("arrived, {left:.1} m off")),
    ))
}

fn not_too_far(limits: &guard::Limits, from: Ned, to: Ned) -> Result<(), Refusal> {
    let length = distance(from, to);
    if length > limits.max_leg_m {
        return refuse(
            "too_far",
            format!("{length:.0} m away; a leg has at most {:.0} m", limits.max_leg_m),
        );
    }
    Ok(())
}

/// Watches a flight in Hold (a reposition) until it arrives. The acknowledgement proves neither acceptance nor arrival.
async fn approach(call: &Call, start: Pose, target: Ned, yaw_deg: f64, words: u64) -> Result<f64, Refusal> {
    let clock = call.vehicle.clock;
    let flat = (start.ned[0] - target[0]).hypot(start.ned[1] - target[1]);
    let climb = (start.ned[2] - target[2]).abs();
    let limit = Duration::from_secs_f64(15.0 + flat / 2.0 + climb / 0.7);
    let whole = distance(start.ned, target).max(0.1);
    let mut nearest = (f64::INFINITY, tokio::time::Instant::now());
    let ended = call
        .wait(limit, |heard| {
            let pose = heard.pose()?;
            let left = distance(pose.ned, target);
            let off = wrap_deg(yaw_deg - pose.yaw_deg).abs();
            call.progress(1.0 - left.min(whole) / whole, "on the way");
            if left < ARRIVED_M && off < 5.0 && pose.speed() < HOVERS_MPS {
                return Some(Ok(left));
            }
            let score = left + off / 30.0;
            if score < nearest.0 - 0.1 {
                nearest = (score, tokio::time::Instant::now());
            }
            (clock.since(nearest.1) > STUCK).then_some(Err(left))
        })
        .await?;
    match ended {
        Some(Ok(left)) => Ok(left),
        Some(Err(left)) => refuse(
            "not_reached",
            format!(
                "no progress for 5 s, {left:.1} m from the target{}",
                call.quoted_since(words)
            ),
        ),
        None => refuse(
            "not_reached",
            format!(
                "not there after {:.0} s{}",
                limit.as_secs_f64(),
                call.quoted_since(words)
            ),
        ),
    }
}

pub(crate) async fn goto_local(call: &Call, row: &Row, args: LocalArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let vehicle = &call.vehicle;
    let (facts, limits) = (vehicle.facts(), &vehicle.config.flight_limits);
    let (pose, home) = pose_and_home(&facts)?;
    let north = row.number("north_m", args.north_m, &mut adjusted)?;
    let east = row.number("east_m", args.east_m, &mut adjusted)?;
    let down = row.number("down_m", args.down_m, &mut adjusted)?;
    let yaw_deg = args
        .yaw_deg
        .map(|yaw| guard::heading("yaw_deg", yaw))
        .transpose()?;
    let away = (north - home.north_m).hypot(east - home.east_m);
    if away > limits.local_radius_m {
        return refuse(
            "too_far",
            format!(
                "{} m from home; goto_local stays within {:.0} m",
                guard::shown(away.round()),
                limits.local_radius_m
            ),
        );
    }
    let pace = Pace::even(LOCAL_MPS);
    let band = guard::band(limits, pace, guard::altitude(home, pose.ned));
    call.judged("height", guard::down(down, band, home))?;
    let target = [north, east, down];
    let leg = Leg::new(pose.ned, target, pace).moving(&pose);
    call.judged("way", guard::way(&facts, limits, &vehicle.config.fence, &leg))?;
    call.judged("battery", guard::battery_for(&facts, limits, pose.ned, target))?;
    vehicle.change_flight(|flight| {
        flight.goal = Some(format!("go to {north:.1} north, {east:.1} east, {down:.1} down"))
    });
    let mut flying = Flying::new(call);
    flying.speed_mps = LOCAL_MPS;
    let arrived = flying
        .to(Target {
            ned: target,
            yaw_deg: yaw_deg.unwrap_or(pose.yaw_deg),
        })
        .await
        .map(|arrived| format!("arrived, {:.2} m off", distance(arrived.ned, target)));
    Ok(Reply::from(arrived).clamped(adjusted))
}

pub(crate) async fn follow_path(call: &Call, row: &Row, args: PathArgs) -> Outcome {
    let mut adjusted = Vec::new();
    let vehicle = &call.vehicle;
    let (facts, limits) = (vehicle.facts(), &vehicle.config.flight_limits);
    let (pose, home) = pose_and_home(&facts)?;
    let cruise = row.number("cruise_mps", args.cruise_mps, &mut adjusted)?;
    if args.waypoints.is_empty() || args.waypoints.len() > limits.max_waypoints {
        return refuse(
            "out_of_range",
            format!(
                "{} waypoints: expected 1 to {}",
                args.waypoints.len(),
                limits.max_waypoints
            ),
        );
    }
    let mut from = pose.ned;
    let (mut length, mut climb) = (0.0, 0.0);
    let mut path = Vec::new();
    for (index, point) in args.waypoints.iter().enumerate() {
        // MAVSDK's speed applies after its waypoint: PX4 flies to the first one at its own speed.
        let flat = if index == 0 {
            cruise.max(Pace::PX4.flat)
        } else {
            cruise
        };
        let pace = Pace { flat, ..Pace::PX4 };
        let to = local(home, point.lat, point.lon, point.alt_m);
        let mut leg = Leg::new(from, to, pace).after(length, climb);
        if index == 0 {
            leg = leg.moving(&pose);
        }
        if let Some(next) = args.waypoints.get(index + 1) {
            // PX4 slows down for a corner, by how much is not known here; it does not stop.
            let after = local(home, next.lat, next.lon, next.alt_m);
            let along = (0..2).map(|axis| (to[axis] - from[axis]) * (after[axis] - to[axis]));
            if along.sum::<f64>() > 0.0 {
                leg = leg.through();
            }
        }
        let judged = judge_point(&facts, limits, &vehicle.config.fence, point, &leg, index);
        call.judged("way", judged).map_err(|refusal| Refusal {
            msg: format!("waypoint {}: {}", index + 1, refusal.msg),
            ..refusal
        })?;
        length += distance(from, to);
        climb += (from[2] - to[2]).abs();
        path.push(Waypoint {
            lat: point.lat,
            lon: point.lon,
            // PX4's height reference has moved since arming; the path uses PX4's.
            alt_m: point.alt_m + pose.relative_m - pose.alt_m,
            speed_mps: cruise,
            last: index + 1 == args.waypoints.len(),
        });
        from = to;
    }
    call.judged("battery", guard::battery_for(&facts, limits, pose.ned, from))?;
    vehicle.change_flight(|flight| flight.goal = Some(format!("follow a path of {} waypoints", path.len())));
    let words = vehicle.telemetry().texts_so_far;
    call.send(Command::UploadMission(path)).await?;
    // Within a second of an upload PX4 acknowledges a start and then refuses it.
    call.pause(Duration::from_secs(1)).await?;
    let limit = Duration::from_secs_f64(length / cruise * 1.5 + climb / 0.7 + 30.0);
    let flown = match call.change_mode(Command::StartMission, 3).await {
        Ok(()) => fly_path(call, from, limit, words).await,
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = &flown {
        call.leave_at_rest(refusal).await;
    }
    let count = args.waypoints.len();
    let flown = flown.map(|left| format!("flew through {count} waypoints, {left:.1} m off the last"));
    Ok(Reply::from(flown).clamped(adjusted))
}

fn judge_point(
    facts: &Facts,
    limits: &guard::Limits,
    fence: &guard::Fence,
    point: &PathPoint,
    leg: &Leg,
    index: usize,
) -> Result<(), Refusal> {
    guard::check_position(point.lat, point.lon)?;
    if !point.alt_m.is_finite() {
        return refuse("not_finite", "alt_m: expected a finite number");
    }
    not_too_far(limits, leg.from, leg.to)?;
    let spacing = distance(leg.from, leg.to);
    if index > 0 && spacing < limits.min_spacing_m {
        return refuse(
            "out_of_range",
            format!(
                "{spacing:.2} m from the one before; at least {:.1} m",
                limits.min_spacing_m
            ),
        );
    }
    path_height(facts, limits, point.alt_m)?;
    guard::way(facts, limits, fence, leg)
}

/// Checks that a waypoint stays in the altitude band even when PX4's home moves.
fn path_height(facts: &Facts, limits: &guard::Limits, alt_m: f64) -> Result<(), Refusal> {
    let lowest = limits.min_alt_m + HOME_MOVES_M;
    let highest = limits.max_alt_m - Pace::PX4.below_ceiling(limits.braking) - HOME_MOVES_M;
    let (from, to) = guard::within(lowest, highest);
    let (code, bound) = if alt_m < lowest {
        ("altitude_floor", format!("at least {from:.1} m"))
    } else if alt_m > highest {
        ("altitude_ceiling", format!("at most {to:.1} m"))
    } else {
        return Ok(());
    };
    let above_sea = |home| guard::above_sea(alt_m, (lowest, highest), home, "");
    if let Some(hint) = facts.home.and_then(above_sea) {
        return refuse(
            code,
            format!(
                "alt_m {}: expected {from:.1} to {to:.1} m above home; {hint}",
                guard::shown(alt_m)
            ),
        );
    }
    refuse(
        code,
        format!(
            "alt_m {}: expected {bound}. On a path the altitude of PX4 drifts by up to {HOME_MOVES_M} m; goto_gps keeps an exact altitude",
            guard::shown(alt_m)
        ),
    )
}

/// Watches a mission until its last waypoint.
async fn fly_path(call: &Call, last: Ned, limit: Duration, words: u64) -> Result<f64, Refusal> {
    let clock = call.vehicle.clock;
    let mut ended_at = None;
    let ended = call
        .wait(limit, |heard| {
            let pose = heard.pose()?;
            let left = distance(pose.ned, last);
            let flat = (pose.ned[0] - last[0]).hypot(pose.ned[1] - last[1]);
            let near = flat < ARRIVED_M * 1.5 && (pose.ned[2] - last[2]).abs() < PATH_HEIGHT_M;
            let mission = heard.mission.map(|seen| seen.value);
            if let Some(mission) = mission.filter(|mission| mission.total > 0) {
                let part = f64::from(mission.current) / f64::from(mission.total);
                call.progress(
                    part,
                    &format!("waypoint {} of {}", mission.current, mission.total),
                );
            }
            // A mission ends in Hold, which is reported up to a second later. Until then the next path must not begin:
            // this Hold would look like another party's in the middle of that path.
            if heard.mode != Some(Mode::Hold) || pose.speed() >= HOVERS_MPS {
                ended_at = None;
                return None;
            }
            // The last progress message may arrive after the mode.
            let at_last = mission.is_none_or(|mission| mission.current + 1 >= mission.total);
            if near && at_last {
                return Some(Ok(left));
            }
            let since = *ended_at.get_or_insert_with(tokio::time::Instant::now);
            (clock.since(since) > ENDED).then_some(Err(left))
        })
        .await?;
    match ended {
        Some(Ok(left)) => Ok(left),
        Some(Err(left)) => refuse(
            "not_reached",
            format!(
                "the path ended {left:.1} m before its last waypoint{}",
                call.quoted_since(words)
            ),
        ),
        None => refuse(
            "not_reached",
            format!(
                "not through after {:.0} s{}",
                limit.as_secs_f64(),
                call.quoted_since(words)
            ),
        ),
    }
}
