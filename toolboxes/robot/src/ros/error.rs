//! Why a robot cannot be reached, or says no.

use std::time::Duration;

/// Why the robot cannot be reached.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RosError {
    /// The domain cannot be joined.
    #[error("DDS domain {domain}: {reason}")]
    Join {
        /// Which one.
        domain: u16,
        /// Why.
        reason: String,
    },
    /// A topic cannot be used.
    #[error("topic {topic}: {reason}")]
    Topic {
        /// Its ROS name.
        topic: String,
        /// Why.
        reason: String,
    },
    /// Nothing subscribes.
    #[error(
        "nothing subscribes to {topic} after {waited:?}; check that the robot is on, and the domain and the interfaces"
    )]
    NoReader {
        /// Its ROS name.
        topic: String,
        /// How long.
        waited: Duration,
    },
    /// The robot is there, and nothing on it hears this topic.
    #[error(
        "nothing subscribes to {topic}: start what moves these parts on the robot, or name its topic in `topics`"
    )]
    Unheard {
        /// Its ROS name.
        topic: String,
    },
    /// No answer.
    #[error("no answer on {topic} within {waited:?}")]
    NoAnswer {
        /// Of the request.
        topic: String,
        /// How long.
        waited: Duration,
    },
    /// An answer that says no.
    #[error("{what}: {code} ({meaning})")]
    Refused {
        /// What was asked.
        what: String,
        /// The robot's code.
        code: i64,
        /// In words.
        meaning: &'static str,
    },
    /// It was closed.
    #[error("the connection to the robot was closed")]
    Closed,
}
