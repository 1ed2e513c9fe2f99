//! Velocities of the base, and the time that movements take.

use crate::action::{Keyframe, Velocity};
use crate::adapter::ActionError;
use crate::capability::Joint;
use crate::model::{Kind, Rounds, travel};
use crate::resolve::remarks::Remarks;
use crate::spot::Spot;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How fast walking turns on the spot, rad/s.
const WALK_TURN: f64 = 0.5;
/// With a cart, the base's largest and usual speeds are this fraction of those without a cart.
const TOWING: f64 = 0.35;
/// The fraction of the largest speed at which a calibration goes from end to end.
pub const SWEEP: f64 = 0.5;
/// The fraction of the largest speed at which a calibration goes home and a tested joint moves.
pub const CAREFUL: f64 = 0.3;
/// The fraction of 90 degrees a second at which a base turns on its way to a place.
pub const WAY_TURN: f64 = 0.5;
/// How fast a wheel turns in a test, degrees per second.
const WHEEL: f64 = 26.0;

/// The velocity of a direction at a speed, no faster than the base goes.
pub(super) fn velocity(
    unit: &Unit,
    direction: &str,
    speed: f64,
    remarks: &mut Remarks,
) -> Result<Velocity, ActionError> {
    let base = unit
        .capabilities()
        .base
        .as_ref()
        .ok_or_else(|| unit.lacks("base"))?;
    let pace = pace(unit);
    let mut slower = |speed: f64, largest: f64, unit: &str| {
        if speed > largest + 1e-9 {
            remarks.clamp("speed", speed, largest);
            remarks.note(format!(
                "{speed:.2} {unit} is too fast here: went at {largest:.2} {unit}"
            ));
        }
        speed.min(largest)
    };
    let mut velocity = Velocity::default();
    match direction {
        "forward" => velocity.x = slower(speed, base.max_linear * pace, "m/s"),
        "backward" => velocity.x = -slower(speed, base.max_linear * pace, "m/s"),
        "left" | "right" => {
            if unit.memory().towing {
                return Err(ActionError::Refused(format!(
                    "{} cannot go sideways with a cart",
                    unit.name
                )));
            }
            if base.max_lateral <= 0.0 {
                return Err(unit.lacks("going sideways"));
            }
            let sideways = slower(speed, base.max_lateral, "m/s");
            velocity.y = if direction == "left" { sideways } else { -sideways };
        }
        "rotate_left" => velocity.turn = WALK_TURN.min(base.max_angular * pace),
        "rotate_right" => velocity.turn = -WALK_TURN.min(base.max_angular * pace),
        other => return Err(ActionError::Refused(format!("no direction {other}"))),
    }
    Ok(velocity)
}

pub(super) fn magnitude(velocity: &Velocity) -> f64 {
    velocity
        .x
        .abs()
        .max(velocity.y.abs())
        .max(velocity.turn.abs())
        .max(1e-3)
}

fn pace(unit: &Unit) -> f64 {
    if unit.memory().towing { TOWING } else { 1.0 }
}

pub(super) fn usual_linear(unit: &Unit) -> f64 {
    unit.capabilities()
        .base
        .as_ref()
        .map_or(0.3, |base| base.usual_linear)
        * pace(unit)
}

/// rad/s of a fraction of 90 degrees per second, no faster than the base turns.
pub(super) fn turn_speed(unit: &Unit, speed: f64) -> f64 {
    let largest = unit
        .capabilities()
        .base
        .as_ref()
        .map_or(0.5, |base| base.max_angular);
    (speed * std::f64::consts::FRAC_PI_2).min(largest) * pace(unit)
}

/// Seconds of a rotation.
#[must_use]
pub fn rotation_seconds(unit: &Unit, degrees: f64, speed: f64) -> f64 {
    degrees.abs().to_radians() / turn_speed(unit, speed)
}

/// Seconds of a distance in a direction; 0 where the robot cannot go there.
#[must_use]
pub fn straight_seconds(unit: &Unit, direction: &str, distance: f64) -> f64 {
    velocity(unit, direction, usual_linear(unit), &mut Remarks::default())
        .map_or(0.0, |velocity| distance / magnitude(&velocity))
}

/// Seconds that the longest movement of an arm or the gantry takes: a plan does not know where they are.
#[must_use]
pub fn farthest_seconds(unit: &Unit, part: Subsystem, speed: f64) -> f64 {
    let joints = unit.capabilities().paced_joints(part).unwrap_or_default();
    let range = |joint: &Joint| (joint.max - joint.min) / (joint.max_speed * speed);
    joints.iter().map(range).fold(0.0, f64::max)
}

/// Seconds of keyframes that begin anywhere.
#[must_use]
pub fn frames_seconds(unit: &Unit, part: Subsystem, frames: &[Keyframe]) -> f64 {
    let joints = unit.capabilities().paced_joints(part).unwrap_or_default();
    let Some(first) = frames.first() else {
        return 0.0;
    };
    // The movement starts at the end of each joint's range that is farther away.
    let far_end = |(joint, to): (&Joint, &f64)| {
        if to - joint.min > joint.max - to {
            joint.min
        } else {
            joint.max
        }
    };
    let mut at: Vec<f64> = joints.iter().zip(&first.positions).map(far_end).collect();
    let mut seconds = 0.0;
    for frame in frames {
        seconds += travel(&joints, &at, &frame.positions, frame.speed) + frame.hold;
        at.clone_from(&frame.positions);
    }
    seconds
}

/// Seconds of a routine that begins anywhere; 0 where the part has none in it.
#[must_use]
pub fn routine_seconds(unit: &Unit, kind: Kind, name: &str, part: Subsystem, rounds: Rounds) -> f64 {
    let frames = unit.model.routine(kind, name, part, rounds);
    let ours = frames.map_or(0.0, |frames| frames_seconds(unit, part, &frames));
    match kind {
        Kind::Wave | Kind::Gesture | Kind::Dance if part.is_arm() => {
            ours.max(unit.capabilities().own.seconds)
        }
        _ => ours,
    }
}

/// Seconds from one end of the lift to the other.
#[must_use]
pub fn lift_seconds(unit: &Unit) -> f64 {
    let lift = unit.capabilities().lift.as_ref();
    lift.map_or(0.0, |lift| (lift.max - lift.min) / lift.max_speed)
}

/// Seconds that a hand takes at most to open or close.
#[must_use]
pub fn grip_seconds(unit: &Unit, arm: Subsystem) -> f64 {
    let Some(arm) = unit.capabilities().arm(arm) else {
        return 0.0;
    };
    let Some(gripper) = &arm.gripper else { return 0.0 };
    let joint = gripper.joint.and_then(|joint| arm.joints.get(joint));
    let opening = (gripper.open - gripper.closed).abs();
    joint.map_or(opening, |joint| (joint.max - joint.min).max(opening)) / gripper.max_speed
}

/// Seconds of a calibration of a part; 0 if the calibration moves nothing, or moves wheels.
#[must_use]
pub fn calibration_seconds(unit: &Unit, part: Subsystem, mode: &str) -> f64 {
    let axes = axes(unit, part);
    let home = axes
        .iter()
        .map(|axis| axis.range / (axis.speed * CAREFUL))
        .fold(0.0, f64::max);
    // Every joint of an arm may hit something, so it looks for its ends carefully.
    let sweep = if part.is_arm() { CAREFUL } else { SWEEP };
    match mode {
        "center_only" | "home_only" => home,
        "full" | "find_limits" | "range_test" => {
            axes.iter()
                // To both ends and back to the start is twice the range, for every start.
                .map(|axis| 2.0 * axis.range / (axis.speed * sweep))
                .sum::<f64>()
                + home
        }
        _ => 0.0,
    }
}

/// Seconds of moving each joint of a part by an angle and back, one after the other; only `motor`, where one is named.
#[must_use]
pub fn test_seconds(unit: &Unit, part: Subsystem, motor: Option<&str>, angle: f64) -> f64 {
    let way = 2.0 * angle.abs();
    if part == Subsystem::Base {
        return way / WHEEL;
    }
    axes(unit, part)
        .iter()
        .filter(|axis| motor.is_none_or(|motor| motor == axis.name))
        .map(|axis| way / (axis.speed * CAREFUL))
        .sum()
}

/// A joint, the lift or the hitch.
struct Axis<'a> {
    name: &'a str,
    /// Degrees or millimetres.
    range: f64,
    /// Per second.
    speed: f64,
}

fn axes(unit: &Unit, part: Subsystem) -> Vec<Axis<'_>> {
    let robot = unit.capabilities();
    let joints = robot.joints(part).unwrap_or_default();
    let joints = joints.iter().map(|joint| Axis {
        name: &joint.name,
        range: joint.max - joint.min,
        speed: joint.max_speed,
    });
    let lift = robot.lift.iter().filter(|_| part == Subsystem::Lift);
    let lift = lift.map(|lift| Axis {
        name: "lift",
        range: lift.max - lift.min,
        speed: lift.max_speed,
    });
    let hitch = robot.hitch.iter().filter(|_| part == Subsystem::Hitch);
    let hitch = hitch.map(|hitch| Axis {
        name: "hitch",
        range: (hitch.closed - hitch.open).abs(),
        speed: hitch.max_speed,
    });
    joints.chain(lift).chain(hitch).collect()
}

/// The seconds that a way should take.
#[must_use]
pub fn way_seconds(unit: &Unit, from: &Spot, to: &Spot) -> f64 {
    let way = (to.x - from.x).hypot(to.y - from.y);
    straight_seconds(unit, "forward", way) + 3.0 * rotation_seconds(unit, 180.0, WAY_TURN)
}
