//! From words to numbers: the motion of a step on this robot.
//!
//! Owns directions, looks, poses and places; `pace` owns speeds and durations. Pure: reads the model, the adapter's
//! last known positions of things, and the settings that tools have made. Read [`resolve`].

mod pace;
mod remarks;

use std::time::Duration;

pub use self::remarks::Remarks;
use crate::action::{Action, LiftTarget, Motion, Velocity};
use crate::adapter::{ActionError, Sighting};
use crate::model::{Intensity, Kind, Rounds};
use crate::spot::Spot;
use crate::step::{Heading, LiftStep, Stage, Step, Where};
use crate::subsystem::Subsystem;
use crate::unit::Unit;
pub use pace::{
    CAREFUL, SWEEP, WAY_TURN, calibration_seconds, farthest_seconds, frames_seconds, grip_seconds,
    lift_seconds, rotation_seconds, routine_seconds, straight_seconds, test_seconds, way_seconds,
};
use pace::{magnitude, turn_speed, usual_linear, velocity};

/// How fast the head looks at something.
pub const LOOK_SPEED: f64 = 0.5;
/// How fast a hand goes to a thing.
pub const REACH_SPEED: f64 = 0.5;
/// The target of a look that stands for the person who speaks.
pub const SPEAKER: &str = "speaker";
/// How long an arm points, in seconds.
const POINT_HOLD: f64 = 1.0;

/// An action, and how it differs from the request.
#[derive(Debug)]
pub struct Resolved {
    /// The action for the adapter.
    pub action: Action,
    /// What the result says of the difference.
    pub remarks: Remarks,
}

/// The person or thing that has to be located before the step can be resolved.
#[must_use]
pub fn sought<'s>(unit: &Unit, step: &'s Step) -> Option<&'s str> {
    match step {
        Step::LookAt { target } if direction(unit, target).is_none() => Some(target),
        Step::Point { target, .. } if target.trim().parse::<f64>().is_err() => Some(target),
        Step::BaseRotate(Heading::To { target, .. }) => Some(target),
        _ => None,
    }
}

/// The action of a step on a subsystem; `seen` is the place of the [`sought`] person or thing.
///
/// # Errors
/// The robot has nothing of that name, or cannot do it now.
pub fn resolve(
    unit: &Unit,
    on: Subsystem,
    step: &Step,
    seen: Option<Sighting>,
) -> Result<Resolved, ActionError> {
    let mut remarks = Remarks::default();
    let (motion, expected) = numbers(unit, on, step, seen, &mut remarks)?;
    Ok(Resolved {
        action: Action {
            subsystem: on,
            step: step.clone(),
            motion,
            expected: Duration::from_secs_f64(expected.clamp(0.0, 3600.0)),
        },
        remarks,
    })
}

/// The numbers for a step's words, and the seconds that it should take.
fn numbers(
    unit: &Unit,
    on: Subsystem,
    step: &Step,
    seen: Option<Sighting>,
    remarks: &mut Remarks,
) -> Result<(Option<Motion>, f64), ActionError> {
    if let Some((target, stage)) = step.reach() {
        return reach(unit, on, target, stage, remarks).map(some);
    }
    if step.grip().is_some() {
        let gripper = unit.capabilities().arm(on).and_then(|arm| arm.gripper.as_ref());
        gripper.ok_or_else(|| unit.lacks(format!("a gripper at {on}")))?;
        return Ok((None, grip_seconds(unit, on)));
    }
    let moved = match step {
        Step::Wave { style } => played(unit, on, Kind::Wave, style, Rounds::One(Intensity::NORMAL))?,
        Step::Nod { r#type, intensity } => {
            let rounds = Rounds::One(self::intensity(intensity));
            played(unit, on, Kind::Nod, r#type, rounds)?
        }
        Step::Gesture { emotion, intensity } => {
            let rounds = Rounds::One(self::intensity(intensity));
            played(unit, on, Kind::Gesture, emotion, rounds)?
        }
        Step::Dance { style, duration } => {
            let rounds = Rounds::For(Duration::from_secs_f64(*duration));
            played(unit, on, Kind::Dance, style, rounds)?
        }
        Step::Point { target, .. } => point(unit, on, target, seen, remarks)?,
        Step::LookAt { target } => look(unit, on, target, seen, remarks)?,
        Step::MoveToPose { pose, speed } => {
            let positions = unit
                .model
                .pose_of(pose, on)
                .ok_or_else(|| unit.lacks(format!("the pose {pose} of {on}")))?;
            joints(unit, on, positions, *speed)
        }
        Step::MoveToPosition(Where::Angles { positions, speed }) => {
            joints(unit, on, positions.clone(), *speed)
        }
        Step::BaseMove {
            direction,
            distance,
            degrees,
        } => {
            let velocity = velocity(unit, direction, usual_linear(unit), remarks)?;
            let way = distance.or(degrees.map(f64::to_radians)).unwrap_or(0.0);
            let seconds = way / magnitude(&velocity);
            driven(velocity, seconds)
        }
        Step::Walk {
            direction,
            speed,
            duration,
        } => driven(velocity(unit, direction, *speed, remarks)?, *duration),
        Step::BaseRotate(Heading::By { degrees, speed }) => rotation(unit, *degrees, *speed),
        Step::BaseRotate(Heading::To { target, speed }) => {
            // The base counts counterclockwise, a sighting counts clockwise.
            let bearing = seen.ok_or_else(|| nowhere(unit, target))?.bearing;
            rotation(unit, -bearing, *speed)
        }
        Step::NavigateTo(to) => {
            let from = unit.here().ok();
            let seconds = from.map_or(0.0, |from| way_seconds(unit, &from, to));
            (Motion::GoTo(to.clone()), seconds)
        }
        Step::GoToPlace { place } => {
            let to = spot(unit, place)?;
            let from = unit.here_in_frame_of(&to)?;
            let seconds = way_seconds(unit, &from, &to);
            (Motion::GoTo(to), seconds)
        }
        Step::Lift(LiftStep::Lift {
            action,
            distance_mm,
            position_mm,
        }) => lift(unit, action, *distance_mm, *position_mm)?,
        Step::SetFlag { .. } | Step::SetSafety { .. } | Step::LoadConfig { .. } => {
            return Err(ActionError::Refused(format!(
                "{} is not an action of a robot",
                step.name()
            )));
        }
        _ => return Ok((None, 0.0)),
    };
    Ok(some(moved))
}

fn some((motion, seconds): (Motion, f64)) -> (Option<Motion>, f64) {
    (Some(motion), seconds)
}

/// Joint angles, and the seconds of the longest way to them.
fn joints(unit: &Unit, on: Subsystem, positions: Vec<f64>, speed: f64) -> (Motion, f64) {
    (
        Motion::Joints { positions, speed },
        farthest_seconds(unit, on, speed),
    )
}

fn played(
    unit: &Unit,
    on: Subsystem,
    kind: Kind,
    name: &str,
    rounds: Rounds,
) -> Result<(Motion, f64), ActionError> {
    let frames = unit
        .model
        .routine(kind, name, on, rounds)
        .ok_or_else(|| unit.lacks(format!("{name} with {on}")))?;
    let seconds = frames_seconds(unit, on, &frames);
    Ok((Motion::Frames(frames), seconds))
}

fn point(
    unit: &Unit,
    on: Subsystem,
    target: &str,
    seen: Option<Sighting>,
    remarks: &mut Remarks,
) -> Result<(Motion, f64), ActionError> {
    // Joints and sightings count clockwise; steps, as tools, counterclockwise.
    let bearing = match target.trim().parse::<f64>() {
        Ok(degrees) if degrees.is_finite() => -degrees,
        _ => seen.ok_or_else(|| nowhere(unit, target))?.bearing,
    };
    let (frames, reaches) = unit
        .model
        .point(on, bearing, POINT_HOLD)
        .ok_or_else(|| unit.lacks(format!("pointing with {on}")))?;
    if !reaches {
        remarks.note(format!(
            "{on} cannot point {:.0} degrees to the {}: it pointed as far as it can",
            bearing.abs(),
            if bearing < 0.0 { "left" } else { "right" }
        ));
    }
    let seconds = frames_seconds(unit, on, &frames);
    Ok((Motion::Frames(frames), seconds))
}

fn look(
    unit: &Unit,
    on: Subsystem,
    target: &str,
    seen: Option<Sighting>,
    remarks: &mut Remarks,
) -> Result<(Motion, f64), ActionError> {
    let [wanted_pan, wanted_tilt] = match direction(unit, target) {
        Some(angles) => angles,
        None => {
            let seen = seen.ok_or_else(|| nowhere(unit, target))?;
            [seen.bearing, seen.tilt]
        }
    };
    let [pan_joint, tilt_joint] = unit.capabilities().joints(on).unwrap_or_default() else {
        return Err(unit.lacks("a head that turns"));
    };
    // A look beyond the joints goes as far as it can, as the README says. Every other movement is refused.
    let pan = wanted_pan.clamp(pan_joint.min, pan_joint.max);
    let tilt = wanted_tilt.clamp(tilt_joint.min, tilt_joint.max);
    // "behind" is 180 degrees, which no head reaches: that is no reason for a note.
    let short =
        (wanted_pan.abs() < 180.0 && (pan - wanted_pan).abs() > 1e-6) || (tilt - wanted_tilt).abs() > 1e-6;
    if short {
        remarks.note(format!(
            "the head cannot turn to {target}: it turned as far as it can"
        ));
        for (argument, wanted, used) in [
            ("bearing_degrees", wanted_pan, pan),
            ("tilt_degrees", wanted_tilt, tilt),
        ] {
            if (used - wanted).abs() > 1e-6 {
                // Joints count clockwise and downwards, arguments to the left and upwards.
                remarks.clamp(argument, 0.0 - wanted, 0.0 - used);
            }
        }
    }
    Ok(joints(unit, on, vec![pan, tilt], LOOK_SPEED))
}

fn nowhere(unit: &Unit, target: &str) -> ActionError {
    ActionError::Refused(format!("{} does not know where {target} is", unit.name))
}

/// The joint angles of a direction: a word, a pose of the head, or degrees to the left and, after a comma, upwards.
fn direction(unit: &Unit, target: &str) -> Option<[f64; 2]> {
    let word = target.trim().to_lowercase();
    match word.as_str() {
        "forward" | "ahead" | "center" | "straight" => return Some([0.0, 0.0]),
        "behind" | "back" | "backward" => return Some([180.0, 0.0]),
        _ => {}
    }
    let pose = |name: &str| match unit.model.pose_of(name, Subsystem::Gantry)?.as_slice() {
        [pan, tilt] => Some([*pan, *tilt]),
        _ => None,
    };
    if let Some(angles) = pose(&format!("look_{word}")).or_else(|| pose(&word)) {
        return Some(angles);
    }
    let mut numbers = word
        .trim_matches(['[', ']'])
        .split(',')
        .map(|part| part.trim().parse::<f64>().ok());
    let pan = numbers.next()??;
    let tilt = match numbers.next() {
        Some(tilt) => tilt?,
        None => 0.0,
    };
    // The joints count clockwise and downwards.
    (numbers.next().is_none() && pan.is_finite() && tilt.is_finite()).then_some([0.0 - pan, 0.0 - tilt])
}

fn reach(
    unit: &Unit,
    on: Subsystem,
    target: &str,
    stage: Stage,
    remarks: &mut Remarks,
) -> Result<(Motion, f64), ActionError> {
    let (positions, taught) = unit
        .model
        .place(target, on, stage)
        .ok_or_else(|| nowhere(unit, target))?;
    if !taught && stage == Stage::Above && unit.adapter.locate(target).is_none() {
        remarks.note(format!(
            "the place of {target} was not taught: the arm went to the usual place (add places.{} to the poses file)",
            target.to_lowercase().replace(' ', "_")
        ));
    }
    Ok(joints(unit, on, positions, REACH_SPEED))
}

fn lift(
    unit: &Unit,
    action: &str,
    distance_mm: Option<f64>,
    position_mm: Option<f64>,
) -> Result<(Motion, f64), ActionError> {
    let lift = unit
        .capabilities()
        .lift
        .as_ref()
        .ok_or_else(|| unit.lacks("lift"))?;
    let by = distance_mm.unwrap_or(50.0);
    let to = match (position_mm, action) {
        (Some(position), _) => LiftTarget::To(position),
        (None, "up") => LiftTarget::By(by),
        (None, "down") => LiftTarget::By(-by),
        (None, "top") => LiftTarget::To(lift.max),
        (None, "bottom") => LiftTarget::To(lift.min),
        (None, _) => LiftTarget::To(lift.home),
    };
    Ok((Motion::Lift(to), lift_seconds(unit)))
}

/// Where a remembered place is.
///
/// # Errors
/// No place has this name.
pub fn spot(unit: &Unit, place: &str) -> Result<Spot, ActionError> {
    let places = unit.places();
    let found = places.find(place).map_err(ActionError::Refused)?;
    found.spot().cloned().map_err(ActionError::Refused)
}

fn rotation(unit: &Unit, degrees: f64, speed: f64) -> (Motion, f64) {
    let velocity = Velocity {
        turn: turn_speed(unit, speed).copysign(degrees),
        ..Velocity::default()
    };
    driven(velocity, rotation_seconds(unit, degrees, speed))
}

fn driven(velocity: Velocity, seconds: f64) -> (Motion, f64) {
    let duration = Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
    (Motion::Drive { velocity, duration }, seconds)
}

/// The size of a movement by its word.
#[must_use]
pub fn intensity(word: &str) -> Intensity {
    match word {
        "subtle" => Intensity::SMALL,
        "emphatic" | "dramatic" => Intensity::LARGE,
        _ => Intensity::NORMAL,
    }
}
