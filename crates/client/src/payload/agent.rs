//! Goals for the agent: `ovos.tools.agent.run`, its progress and its cancel. They are answered while `ovos-tools agent --serve`
//! runs; the service itself does not know them.

use ovos_toolbox_wire::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `ovos.tools.agent.run`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunRequest {
    /// What to reach, in words.
    #[schemars(length(min = 1, max = 4096))]
    pub goal: String,
    /// Names the run for cancel and progress: 1 to 128 of `[A-Za-z0-9._:-]`. If it is missing, the agent makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9._:-]{1,128}$"))]
    pub run_id: Option<String>,
    /// Asks for `ovos.tools.agent.progress` messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
    /// Only tools that read are run; all other calls are planned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Budgets for this run. Those of the configuration are the upper limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<AgentRunBudgets>,
}

/// Budgets of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRunBudgets {
    /// Answers of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Calls of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Tokens of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Degrees of turning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_deg: Option<f64>,
    /// Metres of moving forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_m: Option<f64>,
    /// Minimum battery percentage for motion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery_pct: Option<f64>,
}

/// The answer to `ovos.tools.agent.run`, when the run has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentRunResponse {
    /// The run.
    pub run_id: String,
    /// Whether the goal is reached, as the model says.
    pub ok: bool,
    /// Why it ended, in one word: `done`, `gave_up`; a budget (`steps`, `calls`, `time`, `tokens`, `failures`, `repeats`,
    /// `rotation`, `distance`, `battery`); `latched`, `user_stop`, `operator`, `takeover`; `model_unreachable`,
    /// `model_timeout`, `model_refused`, `model_unreadable`; `service`. Missing where it did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason as a sentence; for a goal that was reached, what was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `Kind: message`. Present unless `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Steps, calls, tokens, degrees and metres that were used.
    #[serde(default)]
    pub used: Value,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// The calls made after the run because toolboxes ask for them, such as a landing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_end: Vec<AgentEndCall>,
}

/// A call that an agent made when its run had ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentEndCall {
    /// The toolbox.
    pub toolbox_id: String,
    /// Its tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Object,
    /// The call; missing where it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Whether the tool says that it is done.
    pub ok: bool,
    /// What the tool says, or why it was not called.
    pub text: String,
    /// Milliseconds.
    pub ms: u64,
}

/// `ovos.tools.agent.progress`: how far a run is. Never sent after its answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentProgress {
    /// The run.
    pub run_id: String,
    /// Counted from 1.
    pub seq: u64,
    /// What happened.
    pub kind: AgentProgressKind,
    /// The step; of `asking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The tool; of `call`, `call_progress` and `came`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its arguments; of `call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What became of it; of `came`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What the model says, what the tool says, or what a person has to confirm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Budgets that are left; of `asking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Value>,
}

/// What a progress message of a run tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentProgressKind {
    /// It begins.
    #[default]
    Began,
    /// The model is asked.
    Asking,
    /// What the model says.
    Thought,
    /// A call is made.
    Call,
    /// How far a call is.
    CallProgress,
    /// What became of a call.
    Came,
    /// A call waits for a person.
    Confirm,
    /// The run is ending; the calls that bring its machines to safety follow.
    Ending,
    /// It has ended; its answer follows.
    Ended,
}

/// `ovos.tools.agent.cancel`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentCancelRequest {
    /// The run.
    pub run_id: String,
}

/// The answer to `ovos.tools.agent.cancel`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentCancelResponse {
    /// The run.
    pub run_id: String,
    /// Whether it was asked to end; its answer says how it did.
    pub cancelled: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
