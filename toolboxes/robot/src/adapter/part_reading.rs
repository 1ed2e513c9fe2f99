//! Where the joints of an arm or the head are by the robot's own word, and when it said so of each.
//!
//! A position of a while ago is no place to start from, to stop at or to judge by. Pure. Read [`PartReading`].

use std::time::{Duration, Instant};

use crate::capability::Joint;
use crate::subsystem::Subsystem;

/// How old a measured position may be at which a stop holds a joint: at 60 degrees a second, the fastest joint that is held so,
/// it is six degrees behind.
pub(super) const FRESH: Duration = Duration::from_millis(100);

/// Where a joint is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JointReading {
    degrees: f64,
    at: Instant,
}

impl JointReading {
    /// `None` for what is no number, as a robot may send it for a motor that is away.
    pub(super) fn new(degrees: f64, at: Instant) -> Option<Self> {
        degrees.is_finite().then_some(Self { degrees, at })
    }
}

/// Why it is not known where a joint is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum SilentJoint {
    /// The robot does not tell it.
    #[error("the robot does not report the position of {joint}")]
    Never {
        /// The part and the joint.
        joint: String,
    },
    /// The robot has told it, and does not any more.
    #[error("the robot has not reported the position of {joint} for {:.1} s", age.as_secs_f64())]
    For {
        /// The part and the joint.
        joint: String,
        /// Since it was told.
        age: Duration,
    },
}

/// The joints of an arm or the head, in the order of its model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartReading(Vec<(String, Option<JointReading>)>);

impl PartReading {
    /// Reads each joint by its number and its name.
    pub(super) fn new(
        on: Subsystem,
        joints: &[Joint],
        read: impl Fn(usize, &str) -> Option<JointReading>,
    ) -> Self {
        let each = joints.iter().enumerate();
        Self(
            each.map(|(number, joint)| (format!("{on} {}", joint.name), read(number, &joint.name)))
                .collect(),
        )
    }

    /// Degrees of all joints, however long ago they were told.
    pub(super) fn last(&self) -> Option<Vec<f64>> {
        self.0
            .iter()
            .map(|(_, reading)| reading.map(|reading| reading.degrees))
            .collect()
    }

    /// Degrees of all joints, if each was told so recently.
    ///
    /// # Errors
    /// A joint was not; the first one is named, and one that has fallen silent before one that was never told.
    pub(super) fn within(&self, limit: Duration) -> Result<Vec<f64>, SilentJoint> {
        for (joint, reading) in &self.0 {
            let age = reading.map(|reading| reading.at.elapsed());
            if let Some(age) = age.filter(|age| *age > limit) {
                return Err(SilentJoint::For {
                    joint: joint.clone(),
                    age,
                });
            }
        }
        let degrees = |(joint, reading): &(String, Option<JointReading>)| {
            let reading = reading.ok_or_else(|| SilentJoint::Never { joint: joint.clone() })?;
            Ok(reading.degrees)
        };
        self.0.iter().map(degrees).collect()
    }
}
