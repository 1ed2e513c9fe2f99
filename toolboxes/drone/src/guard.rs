//! The guards: what a call may do in the present state.
//!
//! Pure: numbers, facts and limits in, a verdict out. The table of tools is [`table`]; ranges, needs and the checks of
//! targets are here; geometry is in [`fence`]. No call can switch a guard off: limits come from the configuration, and
//! an unknown value counts as unsafe. Read [`Refusal`] and [`Facts`].

mod braking;
mod facts;
mod fence;
mod height;
mod leg;
mod limits;
mod position;
mod range;
mod refusal;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use braking::{Braking, reaches};
pub use facts::Caller;
pub(crate) use facts::{Checks, Facts, Health, Home, Landed, Mode, OverrideCause, Pose};
pub use fence::Fence;
pub(crate) use fence::Global;
pub(crate) use height::{above_sea, down, heading, height, within};
pub(crate) use leg::{Leg, Pace};
pub use limits::Limits;
pub(crate) use position::check_position;
pub(crate) use range::{Adjustment, Range, shown, whole};
pub(crate) use refusal::{Refusal, refuse};
pub(crate) use table::{Need, Row, circumstances, failed_checks, row, rows};

use crate::geo::{Ned, distance};

/// The greatest age of a pose, in seconds; poses come at 10 Hz or more.
pub(crate) const POSE_MAX_AGE_S: f64 = 1.0;
/// A vehicle that lands within this distance of its take-off point has returned, in metres; GPS and wind cause a few
/// metres.
pub(crate) const HOME_M: f64 = 10.0;
/// Distance that must stay free beyond the end of a move, in metres.
pub(crate) const AHEAD_MARGIN_M: f64 = 0.5;

/// Checks a tool's preconditions before anything is sent.
///
/// # Errors
/// The first need that does not hold, or whose facts are unknown.
pub(crate) fn require(needs: &[Need], facts: &Facts, limits: &Limits) -> Result<(), Refusal> {
    needs.iter().try_for_each(|need| need.check(facts, limits))
}

/// Checks a target, the straight line to it and the stopping distance beyond it against the fence with its margin and
/// the altitude band.
///
/// # Errors
/// The first limit that would be violated.
pub(crate) fn way(facts: &Facts, limits: &Limits, fence: &Fence, leg: &Leg) -> Result<(), Refusal> {
    if leg.from.iter().chain(&leg.to).any(|value| !value.is_finite()) {
        return refuse("not_finite", "the target is not a finite place");
    }
    let Some(home) = facts.home else {
        return refuse(
            "no_home",
            "the home position is not known, so the fence cannot be checked: wait for GPS",
        );
    };
    let rests = leg.rests(limits.braking);
    limits
        .altitude(altitude(home, leg.from), altitude(home, rests))
        .and_then(|()| fence.contains_way(home, limits.fence_margin_m, leg.from, rests))
        .map_err(|refusal| {
            let room = distance(leg.to, rests);
            if room < 0.05 {
                return refusal;
            }
            Refusal {
                msg: format!("{} (including {room:.1} m braking distance)", refusal.msg),
                ..refusal
            }
        })
}

/// Height above home in metres.
pub(crate) fn altitude(home: Home, place: Ned) -> f64 {
    home.down_m - place[2]
}

/// Checks that nothing is within `dist_m` plus `margin_m` ahead.
///
/// # Errors
/// An obstacle is closer, or the distance is unknown.
pub(crate) fn ahead(facts: &Facts, dist_m: f64, margin_m: f64) -> Result<f64, Refusal> {
    free(&facts.free_ahead_m, "ahead", dist_m, margin_m)
}

/// Checks that nothing is within `dist_m` plus `margin_m` behind the vehicle.
///
/// # Errors
/// Like [`ahead`].
pub(crate) fn behind(facts: &Facts, dist_m: f64, margin_m: f64) -> Result<f64, Refusal> {
    free(&facts.free_behind_m, "behind", dist_m, margin_m)
}

fn free(known: &Result<f64, String>, side: &str, dist_m: f64, margin_m: f64) -> Result<f64, Refusal> {
    match known {
        Err(why) => refuse(
            "no_obstacle_data",
            format!("cannot confirm that the way {side} is free: {why}"),
        ),
        Ok(free) if *free < dist_m + margin_m => refuse(
            "blocked",
            format!(
                "something is {free:.2} m {side}; a move of {dist_m:.2} m needs {:.2} m",
                dist_m + margin_m
            ),
        ),
        Ok(free) => Ok(*free),
    }
}

/// Checks the limits on accumulated turning.
///
/// # Errors
/// The turn would exceed a limit.
pub(crate) fn rotation(facts: &Facts, limits: &Limits, deg: f64) -> Result<(), Refusal> {
    if facts.rotation_accum_deg + deg > limits.max_rotation_deg + 1e-6 {
        return refuse(
            "rotation_limit",
            format!(
                "{deg:.0} deg more exceed the turning limit: turned {:.0} of {:.0} deg since take-off or the last replan",
                facts.rotation_accum_deg, limits.max_rotation_deg
            ),
        );
    }
    if facts.flight_rotation_deg + deg > limits.flight_rotation_deg() + 1e-6 {
        return refuse(
            "rotation_limit",
            format!(
                "{deg:.0} deg more exceed the turning limit of this flight: turned {:.0} of {:.0} deg; a replan does not reset it",
                facts.flight_rotation_deg,
                limits.flight_rotation_deg()
            ),
        );
    }
    Ok(())
}

/// Checks the limits on accumulated forward distance.
///
/// # Errors
/// The move would exceed a limit.
pub(crate) fn forward(facts: &Facts, limits: &Limits, metres: f64) -> Result<(), Refusal> {
    if facts.forward_accum_m + metres > limits.max_forward_m + 1e-6 {
        return refuse(
            "forward_limit",
            format!(
                "{metres:.2} m more exceed the forward limit: moved {:.2} of {:.2} m since take-off or the last replan",
                facts.forward_accum_m, limits.max_forward_m
            ),
        );
    }
    if facts.flight_forward_m + metres > limits.flight_forward_m() + 1e-6 {
        return refuse(
            "forward_limit",
            format!(
                "{metres:.2} m more exceed the forward limit of this flight: moved {:.2} of {:.2} m; a replan does not reset it",
                facts.flight_forward_m,
                limits.flight_forward_m()
            ),
        );
    }
    Ok(())
}

/// Metres left of the forward limit.
pub(crate) fn forward_left(facts: &Facts, limits: &Limits) -> f64 {
    let flight = limits.flight_forward_m() - facts.flight_forward_m;
    (limits.max_forward_m - facts.forward_accum_m)
        .min(flight)
        .max(0.0)
}

/// Checks that the charge suffices for the way to `target` and from there to home.
///
/// # Errors
/// The charge does not suffice, or is unknown.
pub(crate) fn battery_for(facts: &Facts, limits: &Limits, from: Ned, target: Ned) -> Result<(), Refusal> {
    let Some(pct) = facts.battery_pct else {
        return refuse("no_battery_data", "the battery's charge is not known");
    };
    let Some(home) = facts.home else {
        return refuse(
            "no_home",
            "the home position is not known, so the way back cannot be computed",
        );
    };
    let back = distance(target, [home.north_m, home.east_m, target[2]]);
    let way = distance(from, target) + 2.0 * back;
    let need = limits.min_battery_pct + 100.0 * way / (limits.cruise_mps * limits.endurance_s);
    if pct < need {
        return refuse(
            "battery_low",
            format!("battery at {pct:.0} %: this flight and the way home need {need:.0} %"),
        );
    }
    Ok(())
}

/// The heights above home to which a flight at this pace may be sent from the height `now_m`: the altitude band, less
/// the stopping distance at either end towards which the vehicle has to climb or descend.
pub(crate) fn band(limits: &Limits, pace: Pace, now_m: f64) -> (f64, f64) {
    let now_m = now_m.clamp(limits.min_alt_m, limits.max_alt_m);
    // As `vehicle_state` reports it, which may be rounded to either side, and as it may be given back.
    let (below, above) = ((now_m * 10.0).floor() / 10.0, (now_m * 10.0).ceil() / 10.0);
    let lowest = (limits.min_alt_m + pace.above_floor(limits.braking)).min(below.max(limits.min_alt_m));
    let highest = (limits.max_alt_m - pace.below_ceiling(limits.braking)).max(above.min(limits.max_alt_m));
    (lowest, highest)
}

/// The range of a take-off's height, with the stopping distance kept below the ceiling.
pub(crate) fn takeoff_band(row: &Row, limits: &Limits) -> Range {
    let (min, max) = row
        .ranges
        .iter()
        .find(|range| range.arg == "alt_m")
        .map_or((1.0, 30.0), |range| (range.min, range.max));
    let highest = limits.max_alt_m - Pace::TAKEOFF.below_ceiling(limits.braking);
    Range::height("alt_m", min, highest.clamp(min, max))
}
