//! The way of a base to a spot, for a base that does not find its own.
//!
//! Owns the legs: it turns to the spot, drives straight ahead, looks where it has come to, and goes on until it is there. It sees
//! nothing in its way. Every leg is a step like `move_base`, with its limits and its stop. Read [`travel`].

use crate::adapter::{ActionError, ActionOutput, Control};
use crate::bearing::half_circle;
use crate::position::{FARTHEST, check_way};
use crate::resolve::{WAY_TURN, resolve};
use crate::spot::Spot;
use crate::step::{Heading, Step};
use crate::subsystem::Subsystem;
use crate::unit::Unit;

/// The base is there when it is this close, in metres and degrees.
const THERE: f64 = 0.03;
const FACES: f64 = 3.0;
/// How often it looks where it has come to and goes on from there.
const LEGS: u32 = 8;
/// How far one leg goes, in metres: after a longer way it looks where it is.
const LEG: f64 = 2.0;

/// Drives to a spot, from one fix to the next.
///
/// # Errors
/// The base does not know where it is, or does not come nearer; it stands.
///
/// # Cancel safety
/// May be dropped; the halt that follows ends the motion.
pub async fn travel(unit: &Unit, to: &Spot, control: &Control) -> Result<ActionOutput, ActionError> {
    let part = &control.quiet();
    let step = |step: Step| async move {
        let resolved = resolve(unit, Subsystem::Base, &step, None)?;
        unit.execute(&resolved.action, part).await
    };
    // A base that was halted measures here how far it has rolled on.
    step(Step::Stop {}).await?;
    let from = unit.here_in_frame_of(to)?;
    check_way(&from, to)?;
    let whole = (to.x - from.x).hypot(to.y - from.y).max(THERE);
    let turn = |degrees: f64| {
        step(Step::BaseRotate(Heading::By {
            degrees,
            speed: WAY_TURN,
        }))
    };
    let legs = LEGS + bounded_legs(whole);
    for leg in 0.. {
        let at = unit.here_in_frame_of(to)?;
        let (x, y) = (to.x - at.x, to.y - at.y);
        let left = x.hypot(y);
        control.progress((1.0 - left / whole).clamp(0.0, 1.0), &format!("{left:.2} m left"));
        if left <= THERE {
            break;
        }
        if leg >= legs {
            return Err(ActionError::Hardware {
                robot: unit.name.clone(),
                what: format!(
                    "the base does not come to the place: it is still {left:.2} m away after {leg} legs"
                ),
            });
        }
        let aside = half_circle(y.atan2(x).to_degrees() - at.heading);
        if aside.abs() > FACES {
            turn(aside).await?;
            continue;
        }
        let ahead = Step::BaseMove {
            direction: "forward".to_owned(),
            distance: Some(left.min(LEG)),
            degrees: None,
        };
        step(ahead).await?;
    }
    for _ in 0..LEGS {
        let aside = half_circle(to.heading - unit.here_in_frame_of(to)?.heading);
        if aside.abs() <= FACES {
            break;
        }
        turn(aside).await?;
    }
    let at = unit.here_in_frame_of(to)?;
    Ok(ActionOutput::new("the base is there").with("position", at.shown()))
}

/// The legs of a straight way, each with a turn.
fn bounded_legs(way: f64) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most FARTHEST / LEG"
    )]
    let legs = (way.min(FARTHEST) / LEG).ceil() as u32;
    2 * legs
}
