//! Whether the numbers and the words of a robot's file can be meant.
//!
//! Owns what serde cannot know: ranges, lengths, and words that are there twice. Every error begins with the key. Pure. Read
//! [`parts`] and [`words`].

use crate::capability::{Arm, Base, Capabilities, Joint};
use crate::model::error::nearest;
use crate::subsystem::Subsystem;

/// The longest name of a pose, a joint or a place.
const LONGEST: usize = 64;
/// A whole turn in radians, rounded up: a part whose joints all stay within it in degrees moves nothing.
const WHOLE_TURN: f64 = 6.3;
/// The fastest that anything turns, in degrees or millimetres a second.
const FASTEST: f64 = 10_000.0;

/// Checks what a robot has.
///
/// # Errors
/// What cannot be meant, with its key and what is expected.
pub(super) fn parts(parts: &Capabilities) -> Result<(), String> {
    if parts.subsystems().is_empty() {
        return Err("parts: the robot has nothing; expected an arm, gantry, lift, hitch or base".to_owned());
    }
    for on in [Subsystem::LeftArm, Subsystem::RightArm] {
        if let Some(own) = parts.arm(on) {
            arm(&format!("parts.{on}"), own)?;
        }
    }
    if let Some(head) = &parts.gantry {
        if head.len() != 2 {
            return Err(format!(
                "parts.gantry: expected two joints, pan and then tilt, got {}",
                head.len()
            ));
        }
        joints("parts.gantry", head)?;
    }
    if let Some(lift) = &parts.lift {
        span("parts.lift", lift.min, lift.max, "mm")?;
        number("parts.lift.home", lift.home, lift.min, lift.max, "mm")?;
        speed("parts.lift.max_speed", lift.max_speed)?;
    }
    if let Some(hitch) = &parts.hitch {
        number("parts.hitch.open", hitch.open, -360.0, 360.0, "degrees")?;
        number("parts.hitch.closed", hitch.closed, -360.0, 360.0, "degrees")?;
        if hitch.open >= hitch.closed {
            return Err(format!(
                "parts.hitch: open {} has to be below closed {}; where the motor turns the other way round, reverse it in \
                 channels.motors",
                hitch.open, hitch.closed
            ));
        }
        speed("parts.hitch.max_speed", hitch.max_speed)?;
    }
    if let Some(own) = &parts.base {
        base(own)?;
    }
    number("own.seconds", parts.own.seconds, 0.0, 600.0, "s")?;
    match parts.own.wave {
        Some(arm) if !(arm.is_arm() && parts.has(arm)) => {
            Err(format!("own.wave: expected an arm that the robot has, got {arm}"))
        }
        _ => Ok(()),
    }
}

fn arm(key: &str, arm: &Arm) -> Result<(), String> {
    joints(&format!("{key}.joints"), &arm.joints)?;
    let Some(gripper) = &arm.gripper else {
        return Ok(());
    };
    let key = format!("{key}.gripper");
    let (min, max, unit) = match gripper.joint {
        None => (0.0, 100.0, "percent"),
        Some(at) => match arm.joints.get(at) {
            Some(joint) => (joint.min, joint.max, "degrees"),
            None => {
                return Err(format!(
                    "{key}.joint: {at} is no joint of the arm; joints are counted from 0, expected 0 to {}",
                    arm.joints.len().saturating_sub(1)
                ));
            }
        },
    };
    number(&format!("{key}.open"), gripper.open, min, max, unit)?;
    number(&format!("{key}.closed"), gripper.closed, min, max, unit)?;
    if (gripper.open - gripper.closed).abs() < f64::EPSILON {
        return Err(format!("{key}: open and closed are the same position"));
    }
    speed(&format!("{key}.max_speed"), gripper.max_speed)
}

fn joints(key: &str, joints: &[Joint]) -> Result<(), String> {
    if joints.is_empty() {
        return Err(format!("{key}: expected at least one joint"));
    }
    words(key, joints.iter().map(|joint| joint.name.as_str()))?;
    for joint in joints {
        let key = format!("{key}.{}", joint.name);
        span(&key, joint.min, joint.max, "degrees")?;
        speed(&format!("{key}.max_speed"), joint.max_speed)?;
    }
    let turns_further = |joint: &Joint| joint.min.abs().max(joint.max.abs()) > WHOLE_TURN;
    if joints.len() > 1 && !joints.iter().any(turns_further) {
        return Err(format!(
            "{key}: no joint turns further than {WHOLE_TURN}, a whole turn in radians; expected degrees"
        ));
    }
    Ok(())
}

fn base(base: &Base) -> Result<(), String> {
    word("parts.base.kind", &base.kind)?;
    number("parts.base.max_linear", base.max_linear, 0.01, 20.0, "m/s")?;
    number("parts.base.max_lateral", base.max_lateral, 0.0, 20.0, "m/s")?;
    number("parts.base.max_angular", base.max_angular, 0.01, 20.0, "rad/s")?;
    number(
        "parts.base.usual_linear",
        base.usual_linear,
        0.01,
        base.max_linear,
        "m/s",
    )?;
    base.radius.map_or(Ok(()), |radius| {
        number("parts.base.radius", radius, 0.1, 1e6, "m")
    })
}

/// Checks the factors that make a left-arm angle of a right-arm angle.
///
/// # Errors
/// There are more or fewer than joints, or one is neither 1 nor -1.
pub(super) fn mirror(mirror: &[f64], parts: &Capabilities) -> Result<(), String> {
    for on in [Subsystem::LeftArm, Subsystem::RightArm] {
        let joints = parts.joints(on).map_or(mirror.len(), <[_]>::len);
        if joints != mirror.len() {
            return Err(format!(
                "mirror: expected {joints} numbers, one for each joint of {on}, got {}",
                mirror.len()
            ));
        }
    }
    match mirror.iter().find(|sign| sign.abs().to_bits() != 1f64.to_bits()) {
        Some(sign) => Err(format!("mirror: expected 1 or -1 for each joint, got {sign}")),
        None => Ok(()),
    }
}

/// Checks words that stand beside each other: each can be said, and no two are the same in other letters.
///
/// # Errors
/// The word, and why it cannot be one.
pub(crate) fn words<'a>(key: &str, words: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = std::collections::BTreeMap::new();
    for given in words {
        word(key, given)?;
        if let Some(before) = seen.insert(given.to_lowercase(), given) {
            let before = if before == given {
                "there twice".to_owned()
            } else {
                format!("the same word as {before:?}")
            };
            return Err(format!(
                "{key}.{given}: it is {before}; give each a name of its own"
            ));
        }
    }
    Ok(())
}

fn word(key: &str, word: &str) -> Result<(), String> {
    let is_name = !word.is_empty()
        && word.chars().count() <= LONGEST
        && word.trim() == word
        && !word.chars().any(char::is_control);
    is_name.then_some(()).ok_or_else(|| {
        format!("{key}: {word:?} cannot be a name: expected 1 to {LONGEST} characters on one line, without spaces around them")
    })
}

/// Checks that a word is one of those that mean something.
///
/// # Errors
/// The word, those that are known, and the nearest.
pub(super) fn known<'a>(
    key: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), String> {
    if known.clone().any(|one| one == word) {
        return Ok(());
    }
    let near =
        nearest(word, known.clone()).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let known: Vec<&str> = known.collect();
    Err(format!(
        "{key}.{word}: nothing uses it; known are {}{near}",
        known.join(", ")
    ))
}

fn span(key: &str, min: f64, max: f64, unit: &str) -> Result<(), String> {
    if min.is_finite() && max.is_finite() && min < max {
        return Ok(());
    }
    Err(format!(
        "{key}: min {min} has to be below max {max}, both finite numbers in {unit}"
    ))
}

fn speed(key: &str, speed: f64) -> Result<(), String> {
    number(key, speed, 0.1, FASTEST, "a second")
}

/// Checks that a number is in its range; NaN is in none.
///
/// # Errors
/// The number and the range.
pub(crate) fn number(key: &str, value: f64, min: f64, max: f64, unit: &str) -> Result<(), String> {
    if value >= min && value <= max {
        return Ok(());
    }
    Err(format!(
        "{key}: {value} is out of range, expected {min} to {max} {unit}"
    ))
}
