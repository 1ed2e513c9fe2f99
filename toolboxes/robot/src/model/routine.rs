//! How a routine's round becomes keyframes.
//!
//! Owns intensity, repetition and time. Pure. Read [`Rounds`].

use std::time::Duration;

use serde::Deserialize;

use crate::action::Keyframe;
use crate::capability::Joint;

/// Which table a routine is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A wave with an arm.
    Wave,
    /// A nod with the head.
    Nod,
    /// An emotion.
    Gesture,
    /// A dance, whose rounds repeat for as long as wanted.
    Dance,
}

/// One round of a routine in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sequence {
    #[serde(default)]
    pub(crate) arms: Vec<String>,
    #[serde(default)]
    pub(crate) head: Vec<Vec<f64>>,
    pub(crate) speed: f64,
    pub(crate) hold: f64,
}

/// How large and how fast a movement is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intensity {
    /// Factor on the way from home.
    pub size: f64,
    /// Factor on the speed.
    pub pace: f64,
}

impl Intensity {
    /// The size and speed in the file.
    pub const NORMAL: Self = Self { size: 1.0, pace: 1.0 };
    /// Half the way.
    pub const SMALL: Self = Self { size: 0.5, pace: 0.8 };
    /// Further and faster; joints end at their limits, speeds at 1.0.
    pub const LARGE: Self = Self { size: 1.3, pace: 1.3 };
}

/// How often a routine repeats its round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounds {
    /// Once.
    One(Intensity),
    /// Until the time is up, the way home included where there is time for it.
    For(Duration),
}

impl Rounds {
    /// The keyframes, ending at home.
    pub(super) fn frames(
        self,
        joints: &[Joint],
        home: &[f64],
        round: &[Vec<f64>],
        sequence: &Sequence,
    ) -> Vec<Keyframe> {
        let (intensity, mut left) = match self {
            Self::One(intensity) => (intensity, None),
            Self::For(time) => (Intensity::NORMAL, Some(time.as_secs_f64())),
        };
        let speed = (sequence.speed * intensity.pace).clamp(0.1, 1.0);
        let sized = |angles: &Vec<f64>| -> Vec<f64> {
            let one = |((angle, home), joint): ((&f64, &f64), &Joint)| {
                (home + (angle - home) * intensity.size).clamp(joint.min, joint.max)
            };
            angles.iter().zip(home).zip(joints).map(one).collect()
        };
        let mut frames: Vec<Keyframe> = Vec::new();
        let mut at = home.to_vec();
        'rounds: loop {
            for angles in round {
                let positions = sized(angles);
                if let Some(left) = &mut left {
                    let way = travel(joints, &at, &positions, speed) + sequence.hold;
                    let back = travel(joints, &positions, home, speed);
                    if way + back > *left && !frames.is_empty() {
                        break 'rounds;
                    }
                    // A round without movement must end, too.
                    *left -= way.max(0.02);
                }
                at.clone_from(&positions);
                frames.push(Keyframe {
                    positions,
                    speed,
                    hold: sequence.hold,
                });
            }
            if left.is_none_or(|left| left <= 0.0) {
                break;
            }
        }
        frames.push(Keyframe {
            positions: home.to_vec(),
            speed,
            hold: 0.0,
        });
        frames
    }
}

/// Seconds from one position to another at a fraction of the joints' largest speeds.
#[must_use]
pub fn travel(joints: &[Joint], from: &[f64], to: &[f64], speed: f64) -> f64 {
    let one = |((joint, from), to): ((&Joint, &f64), &f64)| (to - from).abs() / (joint.max_speed * speed);
    joints.iter().zip(from).zip(to).map(one).fold(0.0, f64::max)
}
