//! Where a base is, in which frame, and how far it may go from there.
//!
//! Owns how old a measured position may be, and how far dead reckoning is believed. Read [`here`].

use std::time::Duration;

use crate::adapter::ActionError;
use crate::spot::{Fix, Spot};

/// A position that was measured longer ago is not where the base is.
const OLDEST: Duration = Duration::from_secs(2);
/// The longest way, in metres: dead reckoning loses itself on a longer one.
pub const FARTHEST: f64 = 30.0;

/// Where the base is.
///
/// # Errors
/// It does not know, or knew it too long ago.
pub fn here(robot: &str, fix: Option<Fix>) -> Result<Spot, ActionError> {
    let refused = |why: String| ActionError::Refused(format!("{robot} does not know where it is: {why}"));
    let fix = fix.ok_or_else(|| refused("it has not measured its position yet".to_owned()))?;
    if fix.age > OLDEST {
        return Err(refused(format!(
            "its last position is {:.1} s old, expected at most {} s",
            fix.age.as_secs_f64(),
            OLDEST.as_secs()
        )));
    }
    Ok(fix.spot)
}

/// Where the base is, in the frame of a spot.
///
/// # Errors
/// As [`here`], or its frame is another one.
pub fn here_in_frame_of(robot: &str, fix: Option<Fix>, spot: &Spot) -> Result<Spot, ActionError> {
    let at = here(robot, fix)?;
    if at.frame == spot.frame {
        return Ok(at);
    }
    Err(ActionError::Refused(format!(
        "the place was remembered in the frame {}, and {} is in the frame {} now: dead reckoning begins anew with each start, and \
         a map can be another one; drive there and remember it again",
        spot.frame, robot, at.frame
    )))
}

/// Checks that the way to a spot is not too long for dead reckoning.
///
/// # Errors
/// It is, with the limit.
pub fn check_way(from: &Spot, to: &Spot) -> Result<(), ActionError> {
    let way = (to.x - from.x).hypot(to.y - from.y);
    if way <= FARTHEST {
        return Ok(());
    }
    Err(ActionError::OutOfRange {
        what: "the way to the place".to_owned(),
        value: way,
        min: 0.0,
        max: FARTHEST,
        unit: "m",
    })
}
