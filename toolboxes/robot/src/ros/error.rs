//! Why a robot cannot be reached, or says no.

use std::time::Duration;

/// Why the robot cannot be reached.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RosError {
    /// The domain cannot be joined.
    #[error("DDS domain {domain}: {reason}")]
    Join {
        /// The domain.
        domain: u16,
        /// Why.
        reason: String,
    },
    /// A stop did not reach the robot, and went out by a part of the addresses.
    #[error("{error}; {left_out}")]
    LeftOut {
        /// Why the robot was not reached.
        error: Box<RosError>,
        /// The address that this machine lacks.
        left_out: ros_graph::error::GraphError,
    },
    /// A topic cannot be used.
    #[error("topic {topic}: {reason}")]
    Topic {
        /// Its ROS name.
        topic: String,
        /// Why.
        reason: String,
    },
    /// Nothing subscribes to the topic.
    #[error(
        "nothing subscribes to {topic} after {waited:?}; check that the robot is on, and the domain and the interfaces"
    )]
    NoReader {
        /// Its ROS name.
        topic: String,
        /// How long the toolbox waited for a subscriber.
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
    /// The robot hears this topic as another type than ours.
    #[error("{topic} has the type {found} on the robot, expected {expected}: {remedy}")]
    OtherType {
        /// Its ROS name.
        topic: String,
        /// The types in the graph.
        found: String,
        /// Ours.
        expected: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The robot did not answer the request.
    #[error("no answer on {topic} within {waited:?}")]
    NoAnswer {
        /// The topic of the request.
        topic: String,
        /// How long the toolbox waited for the answer.
        waited: Duration,
    },
    /// The robot refused the request.
    #[error("{what}: {code} ({meaning})")]
    Refused {
        /// What was asked.
        what: String,
        /// The robot's code.
        code: i64,
        /// The meaning of the code.
        meaning: &'static str,
    },
    /// What the graph of the robot says.
    #[error(transparent)]
    Graph(#[from] ros_graph::error::GraphError),
    /// The connection was closed.
    #[error("the connection to the robot was closed")]
    Closed,
}
