//! What the toolbox tells the keeper of a program, and what the keeper says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The program that is kept: the first thing that its keeper is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Errand {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// What is added to its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// How long it has to end after SIGINT, in milliseconds.
    pub(crate) grace_ms: u64,
}

/// What the keeper is told afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The program is asked to end, and made to if it does not.
    End,
    /// The program is killed at once.
    Kill,
}

/// What the keeper says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// The program runs; its process has this number.
    Begun(i32),
    /// It cannot be started.
    NotBegun(String),
    /// It has ended, with every process that it had started.
    Ended(Ending),
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// Its exit code; `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// The strongest signal that it was sent.
    pub(crate) means: Option<Means>,
    /// How many processes it left behind, which were killed.
    pub(crate) left_behind: usize,
    /// Why its keeper killed it unbidden.
    pub(crate) cause: Option<Cause>,
    /// The last lines that it wrote.
    pub(crate) output: Vec<String>,
}

/// Why a keeper kills a program although nobody has told it to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// The program wrote more than it may.
    Flood,
    /// The keeper itself was told to end, by the signal of this name.
    Signal(String),
}

/// The signals that end a program, from the gentlest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub(crate) enum Means {
    Interrupt,
    Terminate,
    Kill,
}

impl Means {
    /// The name of the signal.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }
}
