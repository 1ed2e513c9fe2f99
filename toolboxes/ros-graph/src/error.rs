//! Why a type, a value or an entity of the graph cannot be used.

use std::path::PathBuf;
use std::time::Duration;

/// Why a definition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A line of a definition is not of the interface language.
    #[error("{name}, line {line}: {reason}: `{text}`")]
    Syntax {
        /// The interface.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
        /// The line's text.
        text: String,
    },
    /// The name is not one of an interface.
    #[error(
        "`{0}` is not the name of an interface: expected package/msg/Name, package/srv/Name or package/action/Name"
    )]
    Name(String),
    /// There is no definition of the type.
    #[error("no definition of {name}{}: put the folder of its package into `interfaces`", needed(.by))]
    Unknown {
        /// The type.
        name: String,
        /// The type that contains it, when it is not the one that was asked for.
        by: Option<String>,
    },
    /// A type contains itself, or types lie deeper in each other than any robot's.
    #[error("{name}: types are nested more than {limit} deep")]
    Depth {
        /// The type.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// The arrays of a type are larger than any robot's.
    #[error("{name}: the arrays of fixed length take more than {limit} bytes")]
    Size {
        /// The type.
        name: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A folder or a file of definitions cannot be read.
    #[error("read {path}: {reason}")]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A description from the graph makes no sense.
    #[error("the description of {name}: {reason}")]
    Description {
        /// The type.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

fn needed(by: &Option<String>) -> String {
    by.as_ref()
        .map(|by| format!(", which {by} contains"))
        .unwrap_or_default()
}

/// Why a value does not fit its type, or bytes do not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The value does not fit the type.
    #[error("{path}: {reason}")]
    Value {
        /// The field, from the outermost: `pose.position.x`.
        path: String,
        /// What is wrong and what is accepted.
        reason: String,
    },
    /// The bytes are not of the type: another version of it, or another type under its name.
    #[error("the bytes are not the {name} that is known here: {path}: {reason}")]
    Bytes {
        /// The type.
        name: String,
        /// The field at which they differ.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The message has more values than are read.
    #[error("this {name} has more than {limit} values, too many to read")]
    Size {
        /// The type.
        name: String,
        /// The limit.
        limit: usize,
    },
}

/// Why something in the graph was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The type cannot be used.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The value or the message does not fit its type.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The graph cannot be joined.
    #[error("{carrier}: {reason}")]
    Join {
        /// How the graph is reached: `DDS domain 7`, `ws://robot:9090`.
        carrier: String,
        /// Why not.
        reason: String,
    },
    /// The name is not one of ROS.
    #[error("`{0}` is not a ROS name: expected words of letters, digits and underscores with / between them")]
    Name(String),
    /// Nothing in the graph has the name.
    #[error(
        "no {what} {name} in the graph after {waited:?}: start it on the robot, or check its name and the domain"
    )]
    Absent {
        /// `topic`, `service` or `action`.
        what: &'static str,
        /// Its name.
        name: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Nothing subscribes to the topic.
    #[error("nothing subscribes to {topic}: start its subscriber on the robot, or check the name")]
    Unheard {
        /// The topic.
        topic: String,
    },
    /// The graph has the name with another type.
    #[error("{name} is {} in the graph, expected {expected}", .found.join(" and "))]
    OtherType {
        /// The topic, service or action.
        name: String,
        /// The type that was asked for, or `one type`.
        expected: String,
        /// The types in the graph.
        found: Vec<String>,
    },
    /// A service did not answer in time. It may have done what was asked all the same.
    #[error("{service} did not answer within {waited:?}; it may have done what was asked")]
    NoAnswer {
        /// The service.
        service: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Nothing came on a topic that has a publisher.
    #[error("nothing came on {topic} within {waited:?}")]
    Silent {
        /// The topic.
        topic: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The other side refused: a goal, a call, a cancel.
    #[error("{name} refused: {reason}")]
    Refused {
        /// The service or action.
        name: String,
        /// What it said.
        reason: String,
    },
    /// The action does not know the goal: its server was started anew, or has forgotten it.
    #[error("{action} does not know the goal: its server may have been started anew")]
    UnknownGoal {
        /// The action.
        action: String,
    },
    /// A goal was cancelled and has not ended in time, or it was sent and nothing has said what became of it.
    #[error(
        "the goal of {action} may still be running: its end was not confirmed within {waited:?}; look at the robot"
    )]
    GoalGoesOn {
        /// The action.
        action: String,
        /// How long its end was waited for.
        waited: Duration,
    },
    /// What was connected is away: its last publisher left, its process died, the connection broke.
    #[error("{name} is not available: {reason}")]
    Lost {
        /// The topic, service, action or address.
        name: String,
        /// What happened.
        reason: String,
    },
    /// There are as many subscriptions, or as much waits to be sent, as is allowed.
    #[error("{what}: at most {limit}")]
    Busy {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The carrier cannot do this.
    #[error("{carrier} cannot {what}")]
    Unsupported {
        /// The carrier.
        carrier: &'static str,
        /// What it cannot do.
        what: String,
    },
    /// The graph was left.
    #[error("this program has left the ROS graph")]
    Closed,
}

impl GraphError {
    /// What is not in the graph after a wait; `what` is a topic, a service or an action.
    pub(crate) fn absent(what: &'static str, name: &str, waited: Duration) -> Self {
        Self::Absent {
            what,
            name: name.to_owned(),
            waited,
        }
    }
}
