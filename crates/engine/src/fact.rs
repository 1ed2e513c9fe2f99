//! The content of a fact, as plain data. [`super::facts`] makes facts and passes them on.

use std::sync::Arc;
use std::time::Instant;

use ovos_toolbox_wire::{CallOutcome, Effect, Object, Outcome, Progress};
use serde::Serialize;
use serde_json::Value;

/// One step of a call or of the service.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fact {
    /// A call was received.
    Received {
        /// The call.
        call: Arc<Call>,
        /// The request.
        asked: Arc<RequestOrigin>,
    },
    /// The policy decided whether the caller may make the call.
    Policy {
        /// The call.
        call: Arc<Call>,
        /// The caller, as far as the request names it, such as `door:mcp`.
        principal: String,
        /// `allow`, `confirm` or `deny`.
        decision: &'static str,
        /// The rule that decided.
        rule: String,
    },
    /// A call that needed a confirmation got it.
    Confirmed {
        /// The call.
        call: Arc<Call>,
        /// The caller.
        principal: String,
        /// Who confirmed it: `caller` or `operator`.
        by: &'static str,
    },
    /// The call does not run.
    Refused {
        /// The call.
        call: Arc<Call>,
        /// The reason: `Kind: message`.
        error: String,
    },
    /// The call has a valid plan. It is planned again when its toolbox dies before the call begins.
    Planned {
        /// The call.
        call: Arc<Call>,
        /// The generation that runs it.
        generation: u64,
        /// The ids of the actions of each wave.
        waves: Vec<Vec<String>>,
        /// The subsystems that the call holds from its first wave to its last.
        subsystems: Vec<String>,
    },
    /// The call waits for its subsystems.
    Waiting {
        /// The call.
        call: Arc<Call>,
        /// The number of calls ahead of it in the queue.
        ahead: usize,
    },
    /// A wave starts.
    Wave {
        /// The call.
        call: Arc<Call>,
        /// The wave's number, counted from 1.
        wave: usize,
        /// The number of waves of the plan.
        waves: usize,
    },
    /// The engine is about to hand an action to the toolbox.
    ActionStarted {
        /// The call.
        call: Arc<Call>,
        /// The action's id.
        action: String,
        /// The number of its wave, counted from 1.
        wave: usize,
        /// The number of waves of the plan.
        waves: usize,
    },
    /// An action ended.
    ActionEnded {
        /// The call.
        call: Arc<Call>,
        /// The action's id.
        action: String,
        /// How it ended.
        outcome: Outcome,
        /// The number of its wave, counted from 1.
        wave: usize,
        /// The number of waves of the plan.
        waves: usize,
        /// From its start to its end.
        duration_ms: u64,
    },
    /// The toolbox reports how far an action is. Only the call's own queue has these: a toolbox that reports often does
    /// not push other facts out of the stream.
    Update {
        /// The call.
        call: Arc<Call>,
        /// The action's id.
        action: String,
        /// The toolbox's report.
        progress: Progress,
        /// The number of its wave, counted from 1.
        wave: usize,
        /// The number of waves of the plan.
        waves: usize,
    },
    /// The call was asked to end.
    Cancelled {
        /// The call.
        call: Arc<Call>,
        /// Why, as text for people.
        cause: String,
    },
    /// A request was answered.
    Answered {
        /// The call; `None` if the request made none: it names no known tool, or a tool that stops or resumes.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Arc<Call>>,
        /// The request, if it made no call; that of a call is in [`Fact::Received`].
        #[serde(skip_serializing_if = "Option::is_none")]
        asked: Option<Arc<RequestOrigin>>,
        /// The answer.
        answer: Answer,
    },
    /// An emergency stop.
    Stopped {
        /// The id of the stop.
        stop_id: String,
        /// The source of the stop, as text for people.
        reason: String,
        /// The toolboxes that were latched and halted.
        toolboxes: Vec<String>,
        /// Whether the toolbox stopped by itself.
        itself: bool,
    },
    /// An emergency stop was lifted.
    Resumed {
        /// The toolbox; `all` for the stop of everything.
        toolbox_id: String,
        /// The id of the stop.
        stop_id: String,
        /// Who lifted it, as text for people.
        by: String,
    },
    /// A generation of a toolbox takes calls.
    ToolboxUp {
        /// The toolbox.
        toolbox_id: String,
        /// The generation.
        generation: u64,
    },
    /// A generation of a toolbox is closed.
    ToolboxDown {
        /// The toolbox.
        toolbox_id: String,
        /// The generation.
        generation: u64,
    },
}

/// The call that a fact is about.
#[derive(Debug, Serialize)]
pub struct Call {
    /// Counted from 1. Unlike `call_id` it is never used again.
    pub number: u64,
    /// The call's id, unique among the calls under way.
    pub call_id: String,
    /// The toolbox that owns the tool.
    pub toolbox_id: String,
    /// The tool's name.
    pub tool: String,
    /// The tool's effect.
    pub effect: Effect,
}

/// A request and its sender.
#[derive(Debug, Default, Serialize)]
pub struct RequestOrigin {
    /// The topic of the request.
    pub topic: String,
    /// `context.source` of the request.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub source: Value,
    /// `context.destination` of the request.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub destination: Value,
    /// The session, when the request names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The data of the request: name, arguments, `call_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<Object>>,
    /// The parts that are left out because they are too large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<&'static str>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// Whether there is a result.
    pub ok: bool,
    /// How the call ended; `None` when it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// The tool's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why there is no result: `Kind: message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The parts that are left out because they are too large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<&'static str>,
    /// From the receipt of the request until it was answered.
    pub elapsed_ms: u64,
}

/// A fact on the stream.
#[derive(Clone, Debug, Serialize)]
pub struct NumberedFact {
    /// The number of the fact; each fact has the next number, also those of a service that is started again.
    pub number: u64,
    /// Microseconds since the start of the service, on a monotonic clock.
    pub at_us: u64,
    /// What happened.
    #[serde(flatten)]
    pub fact: Arc<Fact>,
}

/// A step of a call, in the call's own queue.
#[derive(Debug)]
pub struct Step {
    /// Counted from 1; a gap means that a step was dropped.
    pub seq: u64,
    /// When it happened.
    pub at: Instant,
    /// What happened.
    pub fact: Arc<Fact>,
}
