//! What goes through the control socket: one JSON object a line, a request and its answer. It is for people on the machine of
//! the service, not for the bus.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::status::StoppedToolbox;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Which calls wait to be confirmed, and which are refused?
    Waiting {},
    /// The call runs when it comes again.
    Approve {
        /// The id of the call that waits, or is refused.
        id: String,
    },
    /// The call does not run, nor the same one for ten minutes.
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
    /// Emergency stop.
    Stop {
        /// The toolbox; without one, or with one that is not installed, everything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        toolbox_id: Option<String>,
    },
}

/// The answer: `error`, or what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlAnswer {
    /// Why nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The calls that wait, oldest first, and then those that are refused; after `approve` and `deny` the one that was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Vec<WaitingCall>>,
    /// What became of each toolbox that was to be stopped or resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolboxes: Option<Vec<StoppedToolbox>>,
}

/// A call that waits to be confirmed, or is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitingCall {
    /// Names it.
    pub id: String,
    /// Who asks, as far as the request says it.
    pub principal: String,
    /// The toolbox that owns the tool.
    pub toolbox_id: String,
    /// The tool.
    pub tool: String,
    /// What it would do.
    pub text: String,
    /// The actions of each wave; null where the plan is very large, and of a call that is refused.
    pub plan: Value,
    /// Whether it is approved and has not come again yet.
    pub approved: bool,
    /// Whether it is refused, for every caller.
    pub refused: bool,
    /// Milliseconds until that is over.
    pub expires_ms: u64,
}
