//! Brings a hand to a point: where its joints are, the angles for the point, a way above the table, and whether it came there.
//!
//! Owns how a point becomes movements of an arm, each a step like `move_arm` with its limits and its stop. An arm that sags is
//! brought closer, and one that stays away is an error: only what the motors measure counts. Read [`bring`].

use crate::action::{Action, Motion};
use crate::adapter::{ActionError, ActionOutput, Control};
use crate::capability::Joint;
use crate::geometry::{End, Geometry, Posture, ReachError, Search};
use crate::model::Place;
use crate::resolve::farthest_seconds;
use crate::spot::metres;
use crate::step::Step;
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// How often an arm that stays away from its point is brought closer.
const CLOSER: u32 = 4;
/// How far a joint's goal is moved beyond its angle to bring it closer, in degrees.
const BEYOND: f64 = 6.0;
/// How high above a thing the hand comes first, in metres: the highest that the joints allow.
const ABOVE: [f64; 5] = [0.1, 0.08, 0.06, 0.04, 0.03];
/// How high a thing is lifted, in metres.
const LIFTED: [f64; 6] = [0.15, 0.12, 0.1, 0.08, 0.06, 0.04];
/// How far above the least height a hand closes on what lies on the table, and how far it is raised to that, in metres.
const FINGER: f64 = 0.007;
const RAISED: f64 = 0.03;

/// Brings an end of a hand to a point in the frame of the arm's base, at a speed of 0.1 to 1.0.
///
/// # Errors
/// The point is out of reach or too low, or the hand did not come there; the arm stands.
///
/// # Cancel safety
/// May be dropped; the halt that follows ends the motion.
pub async fn bring(
    unit: &Unit,
    on: Subsystem,
    (to, end): ([f64; 3], End),
    speed: f64,
    step: &Step,
    control: &Control,
) -> Result<ActionOutput, ActionError> {
    let geometry = geometry(unit, on)?;
    let from = angles(unit, on, control).await?;
    let joints = joints(unit, on, control).await?;
    let search = Search {
        shape: geometry,
        joints: &joints,
        fingers: None,
    };
    let angles = search
        .solve(&from, (end, to), Posture::Near)
        .map_err(|why| refused(on, to, &why))?;
    lead(unit, on, (&angles, end), (speed, None), step, control).await
}

/// Leads an arm to angles, and looks whether an end of its hand came where they bring it: as close as the arm's file says, or `within`
/// so many metres.
///
/// # Errors
/// As [`bring`].
///
/// # Cancel safety
/// As [`bring`].
pub async fn lead(
    unit: &Unit,
    on: Subsystem,
    (to, end): (&[f64], End),
    (speed, within): (f64, Option<f64>),
    step: &Step,
    control: &Control,
) -> Result<ActionOutput, ActionError> {
    let geometry = geometry(unit, on)?;
    let joints = joints(unit, on, control).await?;
    let from = angles(unit, on, control).await?;
    let mut to = to.to_vec();
    keep_hand(unit, on, &mut to, &from);
    let goal = geometry.at(end, &to);
    let within = within.unwrap_or(geometry.tolerance());
    let off = |angles: &[f64]| {
        let at = geometry.at(end, angles);
        let square: f64 = at.iter().zip(goal).map(|(at, to)| (at - to).powi(2)).sum();
        square.sqrt()
    };
    let search = Search {
        shape: geometry,
        joints: &joints,
        fingers: None,
    };
    let vias: Vec<Vec<f64>> = vias(unit, on, &search, &to, (end, goal))
        .into_iter()
        .map(|mut via| {
            keep_hand(unit, on, &mut via, &from);
            via
        })
        .collect();
    let way = search
        .way(&from, &to, &vias)
        .map_err(|why| refused(on, goal, &why))?;
    let all = way.len();
    for (leg, positions) in way.into_iter().enumerate() {
        go(unit, on, positions, speed, step, control).await?;
        #[allow(clippy::cast_precision_loss, reason = "at most three legs")]
        control.progress(
            (leg + 1) as f64 / all as f64,
            &format!("{on}: leg {} of {all}", leg + 1),
        );
    }
    let mut there = angles(unit, on, control).await?;
    let mut asked = to.clone();
    for _ in 0..CLOSER {
        if off(&there) <= within {
            break;
        }
        // What a joint lacks is added to its goal, as far as its limits allow.
        for (((asked, to), there), joint) in asked.iter_mut().zip(&to).zip(&there).zip(&joints) {
            let lacks = (*asked + to - there).clamp(to - BEYOND, to + BEYOND);
            *asked = lacks.max(joint.min).min(joint.max);
        }
        go(unit, on, asked.clone(), speed, step, control).await?;
        there = angles(unit, on, control).await?;
    }
    let left = off(&there);
    if left > within {
        return Err(ActionError::Hardware {
            robot: unit.name.clone(),
            what: format!(
                "{on} stays {:.0} mm away from {}, expected {:.0} mm at most: something holds it back, or its motors are too weak \
                 there",
                left * 1000.0,
                shown(goal),
                within * 1000.0
            ),
        });
    }
    Ok(ActionOutput::said(format!("{on} is there"))
        .with("position", metres(geometry.at(end, &there)))
        .with("off_mm", (left * 10_000.0).round() / 10.0))
}

/// Where a hand goes to pick a thing up or to put it down, for a thing at a point, and a note where that point was raised.
///
/// # Errors
/// As [`bring`]; nothing moves.
///
/// # Cancel safety
/// Only reads.
pub async fn place(
    unit: &Unit,
    on: Subsystem,
    mut at: [f64; 3],
    control: &Control,
) -> Result<(Place, Option<String>), ActionError> {
    let geometry = geometry(unit, on)?;
    let from = angles(unit, on, control).await?;
    let joints = joints(unit, on, control).await?;
    let gripper = unit.capabilities().arm(on).and_then(|arm| arm.gripper.as_ref());
    let mut note = None;
    if let Some(least) = geometry.least().map(|least| least + FINGER)
        && at[2] < least
        && at[2] >= least - RAISED
    {
        note = Some(format!(
            "closed {:.0} mm higher, above the table",
            (least - at[2]) * 1000.0
        ));
        at[2] = least;
    }
    // They come down open or around a thing, and close and open there.
    let fingers = gripper.and_then(|gripper| {
        let part = |part: f64| gripper.open + (gripper.closed - gripper.open) * part;
        Some((gripper.joint?, [0.0, 0.25, 0.5, 0.75, 1.0].map(part).to_vec()))
    });
    let search = Search {
        shape: geometry,
        joints: &joints,
        fingers,
    };
    let wrong = |why| refused(on, at, &why);
    let down = search
        .solve(&from, (End::Grasp, at), Posture::Down)
        .map_err(wrong)?;
    let higher = |heights: &[f64]| {
        heights.iter().find_map(|height| {
            let to = [at[0], at[1], at[2] + height];
            let angles = search.solve(&down, (End::Grasp, to), Posture::Near).ok()?;
            search.way(&angles, &down, &[]).ok().map(|_| angles)
        })
    };
    let above = higher(&ABOVE).ok_or_else(|| {
        ActionError::Refused(format!(
            "{on} cannot come down to {}: it is at the end of its reach",
            shown(at)
        ))
    })?;
    let lifted = higher(&LIFTED).unwrap_or_else(|| above.clone());
    let place = Place {
        retracted: above.clone(),
        above,
        at: down,
        lifted,
    };
    Ok((place, note))
}

/// Where the tip of a hand is.
///
/// # Errors
/// The arm has no shape, or its joints cannot be read.
///
/// # Cancel safety
/// Only reads.
pub async fn here(unit: &Unit, on: Subsystem, control: &Control) -> Result<[f64; 3], ActionError> {
    let geometry = geometry(unit, on)?;
    let grasp = unit
        .capabilities()
        .arm(on)
        .is_some_and(|arm| arm.gripper.is_some());
    let end = if grasp { End::Grasp } else { End::Tip };
    Ok(geometry.at(end, &angles(unit, on, control).await?))
}

fn geometry(unit: &Unit, on: Subsystem) -> Result<&Geometry, ActionError> {
    let geometry = unit.model.geometry(on);
    geometry.map(AsRef::as_ref).ok_or_else(|| {
        unit.lacks(format!(
            "x, y, z with {on}: the robot's file has no parts.{on}.geometry"
        ))
    })
}

/// The angles of an arm as they are now, measured.
async fn angles(unit: &Unit, on: Subsystem, control: &Control) -> Result<Vec<f64>, ActionError> {
    let asked = Action {
        subsystem: on,
        step: Step::MotorStatus { motor_id: None },
        motion: None,
        expected: std::time::Duration::ZERO,
    };
    unit.execute(&asked, &control.quiet()).await?;
    let state = unit.adapter.state(on);
    let joints = unit.capabilities().joints(on).unwrap_or_default().iter();
    let measured = joints.map(|joint| {
        let angle = state["positions"][&joint.name].as_f64();
        angle.ok_or_else(|| ActionError::Hardware {
            robot: unit.name.clone(),
            what: format!("{on} does not know where its joint {} is", joint.name),
        })
    });
    measured.collect()
}

/// The joints of an arm with the ranges that the machine keeps.
async fn joints(unit: &Unit, on: Subsystem, control: &Control) -> Result<Vec<Joint>, ActionError> {
    let mut joints = unit.capabilities().joints(on).unwrap_or_default().to_vec();
    let ranges = unit.adapter.ranges(on, control).await?;
    for (joint, [min, max]) in joints.iter_mut().zip(ranges.unwrap_or_default()) {
        (joint.min, joint.max) = (joint.min.max(min), joint.max.min(max));
    }
    Ok(joints)
}

async fn go(
    unit: &Unit,
    on: Subsystem,
    positions: Vec<f64>,
    speed: f64,
    step: &Step,
    control: &Control,
) -> Result<(), ActionError> {
    let action = Action {
        subsystem: on,
        step: step.clone(),
        motion: Some(Motion::Joints { positions, speed }),
        expected: std::time::Duration::from_secs_f64(farthest_seconds(unit, on, speed)),
    };
    unit.execute(&action, &control.quiet()).await.map(drop)
}

/// A hand stays as it is on its way.
fn keep_hand(unit: &Unit, on: Subsystem, to: &mut [f64], from: &[f64]) {
    let gripper = unit.capabilities().arm(on).and_then(|arm| arm.gripper.as_ref());
    if let Some(joint) = gripper.and_then(|gripper| gripper.joint)
        && let Some((to, from)) = to.get_mut(joint).zip(from.get(joint))
    {
        *to = *from;
    }
}

/// Positions by which a hand may come to its goal where the straight way is too low: home, and above the goal.
fn vias(
    unit: &Unit,
    on: Subsystem,
    search: &Search<'_>,
    to: &[f64],
    (end, goal): (End, [f64; 3]),
) -> Vec<Vec<f64>> {
    let above = |height: &f64| {
        let point = [goal[0], goal[1], goal[2] + height];
        search.solve(to, (end, point), Posture::Near).ok()
    };
    let mut vias: Vec<Vec<f64>> = ABOVE.iter().filter_map(above).take(1).collect();
    vias.extend(unit.model.home(on).filter(|home| home.len() == to.len()));
    vias
}

fn refused(on: Subsystem, to: [f64; 3], why: &ReachError) -> ActionError {
    ActionError::Refused(format!("{on} cannot go to {}: {why}", shown(to)))
}

fn shown([x, y, z]: [f64; 3]) -> String {
    format!("x {x:.3}, y {y:.3}, z {z:.3} m")
}
