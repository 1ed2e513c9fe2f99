//! A call: its answer under either contract, its progress, its plan, its cancel.

use ovos_toolbox_wire::{Content, Effect, Object, Outcome, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer to `ovos.tools.invoke`: exactly one of `result` and `error`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InvokeResponse {
    /// The name as it was given; "" where it was missing.
    #[serde(default)]
    #[schemars(!default)]
    pub name: Value,
    /// What the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why there is no result: `Kind: message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// As it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Where the request says `"detail": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_detail: Option<ErrorDetail>,
    /// Where the request says `"detail": true` and the call has to be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// Where the request says `"content"`: the pictures and other media beside the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Content>,
    /// Content that was left out because it breaks a rule, and which rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content_refused: Vec<String>,
    /// Where the request says `"detail": true`: the given arguments that the tool did not get, because it does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// The key that marks a result as a failure: `ok` or `success`, if it is false: `ok` or `success`, which is false.
#[must_use]
pub fn failure_key(result: &Value) -> Option<&'static str> {
    let is_false = |key: &&str| result.get(*key) == Some(&Value::Bool(false));
    ["ok", "success"].into_iter().find(is_false)
}

/// The answer to `ovos.persona.tools.call`: exactly one of `result` and `error`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallResponse {
    /// What the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why there is no result: `Kind: message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The toolbox that answers.
    pub toolbox_id: String,
    /// As it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Where the request says `"detail": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_detail: Option<ErrorDetail>,
    /// Where the request says `"detail": true` and the call has to be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// Where the request says `"content"`: the pictures and other media beside the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Content>,
    /// Content that was left out because it breaks a rule, and which rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content_refused: Vec<String>,
    /// Where the request says `"detail": true`: the given arguments that the tool did not get, because it does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// A call that runs after it has been confirmed: when the same request comes again with the token, or after an operator has
/// approved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confirm {
    /// Names it for `ovos-tools approve` and `deny`.
    pub id: String,
    /// For the key `confirm` of the same request; for one run.
    pub token: String,
    /// What the call would do, to be said or shown to a person: it completes "Shall I ...?", in the language of the session where the
    /// toolbox has a sentence in it, and in English otherwise.
    pub text: String,
    /// The language of `text`, such as `en` or `de-DE`.
    #[serde(default = "english")]
    #[schemars(!default)]
    pub lang: String,
    /// The actions of the plan with their parameters, for a person who wants to know exactly.
    #[serde(default)]
    #[schemars(!default)]
    pub plan: String,
    /// How to state the tool's effect in the configuration. Present only if nothing states it, so that the tool counts as `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(!default)]
    pub note: Option<String>,
    /// Milliseconds until the token is no longer valid.
    pub expires_ms: u64,
}

/// The language of a service that does not say it.
fn english() -> String {
    "en".to_owned()
}

/// Details of an error, for a program. Sent only where the request says `"detail": true`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// The word before the colon of `error`.
    pub kind: String,
    /// Details for a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What happened to each action, when any ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// How far a call is. Never sent after the call's answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ProgressMessage {
    /// The call, or the run.
    pub call_id: String,
    /// In a run: which step the message is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The tool.
    pub name: String,
    /// Its toolbox.
    pub toolbox_id: String,
    /// Counted from 1, in a run for each step; a gap means that a message was dropped.
    pub seq: u64,
    /// What happened.
    pub kind: ProgressKind,
    /// Counted from 1; 0 while the call waits.
    pub wave: usize,
    /// How many waves there are; 0 while the call waits.
    pub waves: usize,
    /// The action's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// How the action ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How far the action is, 0.0 to 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
    /// What the toolbox says, or how many calls are ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Details from the toolbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Milliseconds since the request was received.
    pub elapsed_ms: u64,
}

/// What a progress message tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgressKind {
    /// The call waits for its subsystems.
    Queued,
    /// A wave starts.
    Wave,
    /// An action was handed to the toolbox.
    ActionStarted,
    /// An action ended.
    ActionEnded,
    /// The toolbox says how far an action is.
    Update,
    /// A kind that only a newer service has.
    #[serde(untagged)]
    #[schemars(!untagged, skip)]
    Other(String),
}

impl Default for ProgressKind {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// The answer to `ovos.tools.cancel`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct CancelResponse {
    /// The call.
    pub call_id: String,
    /// Whether it was asked to end. A `safe` action still goes on to its end state.
    pub cancelled: bool,
    /// `planning`, `queued`, `running`, `ended` or `unknown`: the state of the call when the request arrived.
    pub state: String,
    /// Why nothing was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer to `ovos.tools.plan`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanResponse {
    /// The name as it was given.
    pub name: Value,
    /// The toolbox that owns the tool.
    pub toolbox_id: String,
    /// What the tool does to the world.
    pub effect: Effect,
    /// The longest it can take, in milliseconds, waiting not counted.
    pub bound_ms: u64,
    /// What it holds from its first wave to its last.
    pub subsystems: Vec<String>,
    /// The actions of each wave.
    pub waves: Vec<Vec<PlannedActionEntry>>,
    /// The graph as a Mermaid flowchart.
    pub mermaid: String,
    /// The graph in Graphviz' language.
    pub dot: String,
    /// The given arguments that the tool would not get, because it does not know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// One action of a plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlannedActionEntry {
    /// Unique in the plan.
    pub id: String,
    /// The name of the action.
    pub name: String,
    /// The subsystems that it uses.
    pub subsystems: Vec<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// Ids of the actions whose outputs it receives.
    pub dependencies: Vec<String>,
    /// The parameters for the toolbox.
    pub params: Object,
}

/// The answer to `ovos.tools.plan` when there is no plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanErrorResponse {
    /// The name as it was given; "" where it was missing.
    pub name: Value,
    /// `Kind: message`
    pub error: String,
}
