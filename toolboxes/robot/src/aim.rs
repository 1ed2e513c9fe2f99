//! Where a hand goes for a thing or a place that has a name.
//!
//! Owns the order in which that is looked for: the call's own coordinates, what the robot's file teaches, a remembered place, and what
//! the simulator or a recogniser sees. What is found for the first step of a call holds for its others. Read [`aim`].

use ovos_toolbox_sdk::prelude::*;

use crate::adapter::{ActionOutput, Control};
use crate::error::tool_error;
use crate::geometry::End;
use crate::reach;
use crate::recognition;
use crate::resolve::REACH_SPEED;
use crate::robots::Robots;
use crate::step::{Stage, Step, Where};
use crate::subsystem::Subsystem;
use crate::unit::{Aim, Unit};

/// Angles for a step that reaches, and a note on how they differ from what was asked.
pub struct Aimed {
    angles: Vec<f64>,
    /// How close to there the hand has to come, where that is closer than [`BESIDE`].
    is_exact: bool,
    note: Option<String>,
}

/// How far beside its way a hand may be that comes to a thing or leaves it, in metres.
const BESIDE: f64 = 0.03;

impl Aimed {
    /// Leads the hand there.
    ///
    /// # Errors
    /// As [`reach::lead`].
    ///
    /// # Cancel safety
    /// As [`reach::lead`].
    pub async fn reach(
        &self,
        unit: &Unit,
        on: Subsystem,
        step: &Step,
        control: &Control,
    ) -> Result<ActionOutput, ToolError> {
        let within = (!self.is_exact).then_some(BESIDE);
        let led = reach::lead(
            unit,
            on,
            (&self.angles, End::Grasp),
            (REACH_SPEED, within),
            step,
            control,
        )
        .await;
        let mut output = led.map_err(tool_error)?;
        output.notes.extend(self.note.clone());
        Ok(output)
    }
}

/// Where an arm with a shape goes for a step that reaches; `None` where its file teaches the place, or for an arm without a shape.
///
/// # Errors
/// Nothing knows where the thing is, or the arm cannot go there.
///
/// # Cancel safety
/// Only asks.
pub async fn aim(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    step: &Step,
    control: &Control,
) -> Result<Option<Aimed>, ToolError> {
    let Some((target, stage)) = step.reach() else {
        return Ok(None);
    };
    let given = match step {
        Step::MoveToPosition(Where::Above { at, .. }) => *at,
        _ => None,
    };
    if !unit.capabilities().reaches(on) {
        return match given {
            Some(_) => Err(tool_error(unit.lacks(format!(
                "x, y, z with {on}: the robot's file has no parts.{on}.geometry"
            )))),
            None => Ok(None),
        };
    }
    if stage == Stage::Above {
        unit.memory().aims.remove(&on);
        let Some(at) = found(context, unit, on, target, given).await? else {
            return Ok(None);
        };
        let (place, note) = reach::place(unit, on, at, control).await.map_err(tool_error)?;
        let target = target.to_owned();
        let aim = Aim { target, place };
        let aimed = aimed(&aim, stage, note);
        unit.memory().aims.insert(on, aim);
        return Ok(Some(aimed));
    }
    let memory = unit.memory();
    let aim = memory.aims.get(&on).filter(|aim| aim.target == target);
    Ok(aim.map(|aim| aimed(aim, stage, None)))
}

fn aimed(aim: &Aim, stage: Stage, note: Option<String>) -> Aimed {
    Aimed {
        angles: aim.place.of(stage).to_vec(),
        is_exact: stage == Stage::At,
        note,
    }
}

/// Where the thing is in the frame of the arm; `None` where the robot's file teaches how it is reached.
async fn found(
    context: &Context<Robots>,
    unit: &Unit,
    on: Subsystem,
    target: &str,
    given: Option<[f64; 3]>,
) -> Result<Option<[f64; 3]>, ToolError> {
    if given.is_some() {
        return Ok(given);
    }
    if unit.model.teaches(target) {
        return Ok(None);
    }
    let body = unit.body(on);
    let hand = unit.places().hand(target, (on, body.as_ref()));
    if let Some(hand) = hand.map_err(|why| ToolError::new("RobotError", why))? {
        return Ok(Some(hand));
    }
    let seen = match unit.adapter.locate(target).and_then(|seen| seen.at) {
        Some(at) => Some(at),
        None => recognition::locate(context, unit, target, Some(on))
            .await
            .and_then(|seen| seen.at),
    };
    seen.map(Some).ok_or_else(|| {
        ToolError::new(
            "RobotError",
            format!(
                "{} does not know where {target} is: nothing sees it, and no place has that name; give x, y and z, or bring the hand \
                 there and call remember_place",
                unit.name
            ),
        )
    })
}
