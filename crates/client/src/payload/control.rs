//! The messages of the control socket: one JSON object a line, a request and its answer. The socket is for people on the machine
//! of the service, not for the bus.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::facts::FactPosition;
use super::status::StoppedToolbox;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Asks which calls wait to be confirmed and which are refused.
    Waiting {},
    /// Approves a call: it runs when the same request comes again.
    Approve {
        /// The id of the call that waits, or is refused.
        id: String,
    },
    /// Refuses a call: neither it nor the same call runs for ten minutes.
    Deny {
        /// The id of the call that waits.
        id: String,
    },
    /// Lifts an emergency stop.
    Resume {
        /// The toolbox, or `all`.
        toolbox_id: String,
        /// The stop to lift.
        stop_id: String,
    },
    /// Asks for the facts after one that is known, from the record and then as they happen. The answer has no end: a
    /// [`FactLine`](super::FactLine) a line.
    Facts {
        /// The last fact that is known; without one the facts begin with the oldest that is recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FactPosition>,
    },
    /// Stops in an emergency.
    Stop {
        /// The toolbox to stop. If it is missing or not installed, everything is stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        toolbox_id: Option<String>,
    },
}

/// The answer: `error`, or what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlAnswer {
    /// Why the request was not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For `waiting`: the calls that wait, oldest first, then those that are refused. For `approve` and `deny`: the call in
    /// question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Vec<WaitingCall>>,
    /// For `stop` and `resume`: the result for each toolbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolboxes: Option<Vec<StoppedToolbox>>,
}

/// A call that waits to be confirmed, or is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitingCall {
    /// The id of the call, for `approve` and `deny`.
    pub id: String,
    /// The caller, as far as the request names it.
    pub principal: String,
    /// The toolbox that owns the tool.
    pub toolbox_id: String,
    /// The tool.
    pub tool: String,
    /// What the call would do.
    pub text: String,
    /// The actions of each wave; null if the plan is very large or the call is refused.
    pub plan: Value,
    /// Whether the call is approved and its request has not come again yet.
    pub approved: bool,
    /// Whether the call is refused, for every caller.
    pub refused: bool,
    /// Milliseconds until the call no longer waits or is no longer refused.
    pub expires_ms: u64,
}
