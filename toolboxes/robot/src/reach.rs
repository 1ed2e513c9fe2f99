//! Brings a hand to a point: where its joints are, the angles for the point, a way above the table, and whether it came there.
//!
//! Owns how a point becomes movements of an arm, each a step like `move_arm` with its limits and its stop. An arm that sags is
//! brought closer, and one that stays away is an error: only what the motors measure counts. Read [`bring`].

use std::sync::Arc;

use ovos_toolbox_sdk::tokio::task::spawn_blocking;

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
/// Which parts of that are tried, the largest first, where more of it would bring the arm too low once what holds it gives way.
const PARTS: [f64; 4] = [1.0, 0.5, 0.25, 0.1];
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
    let from = angles(unit, on, control).await?;
    let arm = Shaped::of(unit, on, control).await?;
    let found = arm
        .find(move |search| search.solve(&from, (end, to), Posture::Near))
        .await?;
    let angles = found.map_err(|why| refused(on, to, &why))?;
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
    let arm = Shaped::of(unit, on, control).await?;
    let from = angles(unit, on, control).await?;
    let mut to = to.to_vec();
    arm.keep_hand(&mut to, &from);
    let goal = geometry.at(end, &to);
    let within = within.unwrap_or(geometry.tolerance());
    let off = |angles: &[f64]| {
        let at = geometry.at(end, angles);
        let square: f64 = at.iter().zip(goal).map(|(at, to)| (at - to).powi(2)).sum();
        square.sqrt()
    };
    let home = unit.model.home(on).filter(|home| home.len() == to.len());
    let (goes, hand) = (to.clone(), arm.clone());
    let way = arm.find(move |search| {
        let mut vias = vias(search, home, &goes, (end, goal));
        for via in &mut vias {
            hand.keep_hand(via, &from);
        }
        search.way(&from, &goes, &vias)
    });
    let way = way.await?.map_err(|why| refused(on, goal, &why))?;
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
        let Some(closer) = arm.beyond(&to, &asked, &there) else {
            break;
        };
        asked = closer;
        go(unit, on, asked.clone(), speed, step, control).await?;
        there = angles(unit, on, control).await?;
    }
    let left = off(&there);
    if left > within {
        // What it is told beyond its goal has not helped, and it would go there when what holds it gives way.
        if asked != to {
            go(unit, on, to.clone(), speed, step, control).await?;
        }
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
    Ok(ActionOutput::new(format!("{on} is there"))
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
    let mut arm = Shaped::of(unit, on, control).await?;
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
    arm.fingers = gripper.and_then(|gripper| {
        let part = |part: f64| gripper.open + (gripper.closed - gripper.open) * part;
        Some((gripper.joint?, [0.0, 0.25, 0.5, 0.75, 1.0].map(part).to_vec()))
    });
    let found = arm.find(move |search| above_and_below(search, &from, at));
    let place = found.await?.map_err(|why| refused(on, at, &why))?;
    let place = place.ok_or_else(|| {
        ActionError::Refused(format!(
            "{on} cannot come down to {}: it is at the end of its reach",
            shown(at)
        ))
    })?;
    Ok((place, note))
}

/// Where the hand goes for a point; `None` where it cannot come down to it.
fn above_and_below(search: &Search<'_>, from: &[f64], at: [f64; 3]) -> Result<Option<Place>, ReachError> {
    let down = search.solve(from, (End::Grasp, at), Posture::Down)?;
    let comes_down = |above: &[f64]| search.way(above, &down, &[]).is_ok();
    let higher = |heights: &[f64]| raised(search, &down, (End::Grasp, at), heights, &comes_down);
    let Some(above) = higher(&ABOVE) else {
        return Ok(None);
    };
    let lifted = higher(&LIFTED).unwrap_or_else(|| above.clone());
    Ok(Some(Place {
        retracted: above.clone(),
        above,
        at: down,
        lifted,
    }))
}

/// The angles for the first of some heights above a point, the highest first, to which the joints bring the hand and which will do.
fn raised(
    search: &Search<'_>,
    from: &[f64],
    (end, at): (End, [f64; 3]),
    heights: &[f64],
    will_do: &dyn Fn(&[f64]) -> bool,
) -> Option<Vec<f64>> {
    // A height that is too far away by some distance says the same of those less than that below it.
    let mut within = f64::INFINITY;
    for height in heights.iter() {
        if *height > within {
            continue;
        }
        match search.solve(from, (end, [at[0], at[1], at[2] + height]), Posture::Near) {
            Ok(angles) if will_do(&angles) => return Some(angles),
            Err(ReachError::Away { short, .. }) => within = height - short,
            _ => {}
        }
    }
    None
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

fn geometry(unit: &Unit, on: Subsystem) -> Result<&Arc<Geometry>, ActionError> {
    unit.model.geometry(on).ok_or_else(|| {
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

/// An arm with its shape, and its joints with the ranges that the machine keeps now.
#[derive(Clone)]
struct Shaped {
    robot: String,
    shape: Arc<Geometry>,
    joints: Vec<Joint>,
    /// Which joint its gripper is.
    gripper: Option<usize>,
    fingers: Option<(usize, Vec<f64>)>,
}

impl Shaped {
    async fn of(unit: &Unit, on: Subsystem, control: &Control) -> Result<Self, ActionError> {
        let mut joints = unit.capabilities().joints(on).unwrap_or_default().to_vec();
        let ranges = unit.adapter.ranges(on, control).await?;
        for (joint, [min, max]) in joints.iter_mut().zip(ranges.unwrap_or_default()) {
            (joint.min, joint.max) = (joint.min.max(min), joint.max.min(max));
        }
        let gripper = unit.capabilities().arm(on).and_then(|arm| arm.gripper.as_ref());
        Ok(Self {
            robot: unit.name.clone(),
            shape: Arc::clone(geometry(unit, on)?),
            joints,
            gripper: gripper.and_then(|gripper| gripper.joint),
            fingers: None,
        })
    }

    fn search(&self) -> Search<'_> {
        Search {
            shape: &self.shape,
            joints: &self.joints,
            fingers: self.fingers.clone(),
        }
    }

    /// Searches on a thread that may compute for a while, so that a call that is cancelled does not wait for it.
    async fn find<R: Send + 'static>(
        &self,
        find: impl FnOnce(&Search<'_>) -> R + Send + 'static,
    ) -> Result<R, ActionError> {
        let arm = self.clone();
        let found = spawn_blocking(move || find(&arm.search())).await;
        found.map_err(|error| ActionError::Hardware {
            robot: self.robot.clone(),
            what: format!("the search for joint angles ended early: {error}"),
        })
    }

    /// A hand stays as it is on its way, within the range of its joint: closed, it is measured a hair beyond it.
    fn keep_hand(&self, to: &mut [f64], from: &[f64]) {
        let from = self.search().within(from);
        if let Some(joint) = self.gripper
            && let Some((to, from)) = to.get_mut(joint).zip(from.get(joint))
        {
            *to = *from;
        }
    }

    /// A goal beyond the present one for an arm that is short of its position: what each joint lacks is added to its goal, as far as its
    /// limits and the table allow. `None` where they allow nothing.
    fn beyond(&self, to: &[f64], asked: &[f64], there: &[f64]) -> Option<Vec<f64>> {
        let search = self.search();
        let lacks = to.iter().zip(asked).zip(there);
        let wanted: Vec<f64> = lacks
            .map(|((to, asked), there)| (asked + to - there).clamp(to - BEYOND, to + BEYOND))
            .collect();
        let part = |part: &f64| {
            let goal: Vec<f64> = asked
                .iter()
                .zip(&wanted)
                .map(|(asked, wanted)| asked + (wanted - asked) * part)
                .collect();
            search.within(&goal)
        };
        PARTS.iter().map(part).find(|goal| search.allows(there, goal))
    }
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

/// Positions by which a hand may come to its goal where the straight way is too low: home, and above the goal.
fn vias(
    search: &Search<'_>,
    home: Option<Vec<f64>>,
    to: &[f64],
    (end, goal): (End, [f64; 3]),
) -> Vec<Vec<f64>> {
    let above = raised(search, to, (end, goal), &ABOVE, &|_| true);
    above
        .into_iter()
        .chain(home.map(|home| search.within(&home)))
        .collect()
}

fn refused(on: Subsystem, to: [f64; 3], why: &ReachError) -> ActionError {
    ActionError::Refused(format!("{on} cannot go to {}: {why}", shown(to)))
}

fn shown([x, y, z]: [f64; 3]) -> String {
    format!("x {x:.3}, y {y:.3}, z {z:.3} m")
}
