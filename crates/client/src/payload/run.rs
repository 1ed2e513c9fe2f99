//! A run: several calls as one request, in which later ones may take values from the results of earlier ones.

use ovos_toolbox_wire::{Content, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Confirm, ErrorDetail, PlanResponse};
use super::request::CallOptions;

/// `ovos.tools.run`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RunRequest {
    /// The calls, in the order in which those that are ready together begin.
    #[schemars(length(min = 1, max = 64))]
    pub steps: Vec<RunStep>,
    /// The options of a call, for the run as a whole. `confirm` and `decline` mean nothing here, and `content` is `path`.
    #[serde(flatten)]
    pub options: CallOptions,
}

/// One call of a run. It begins when every step that it waits for has completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStep {
    /// Unique in the run.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub id: String,
    /// The tool, or its alias `<toolbox_id>__<name>`.
    pub name: String,
    /// Its arguments. At any depth, `{"$from": "STEP.PATH"}` stands for a value from the result of another step, for which
    /// this one waits.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub args: Object,
    /// Ids of further steps that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Which toolbox's tool is meant, where two own the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
}

/// The answer to `ovos.tools.run`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RunResponse {
    /// As it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Whether every step completed.
    pub ok: bool,
    /// What ended the run: `Kind: message`. Present unless `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where the request says `"detail": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_detail: Option<ErrorDetail>,
    /// What became of each step, in the order of the request; empty where the run is not valid.
    pub steps: Vec<RunStepReport>,
}

/// What became of one step.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RunStepReport {
    /// The step.
    pub id: String,
    /// The tool, as it was given.
    pub name: String,
    /// How it ended.
    pub status: RunStatus,
    /// Why it did not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of its call, for status and logs: `<call_id of the run>:<id>`. Missing where it did not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the result is not here, although there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_left_out: Option<String>,
    /// Why there is no result: `Kind: message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where the request says `"detail": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_detail: Option<ErrorDetail>,
    /// How the step can be confirmed, by itself: under `ovos.tools.invoke`, with the `args` that are given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// Beside `confirm`: its arguments, with the values from results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
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

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Everything was done.
    Completed,
    /// It was refused or failed, or its result says `ok: false` or `success: false`.
    Failed,
    /// The time of an action or of the run was up.
    TimedOut,
    /// It was cancelled, ended by the user's stop, or a safe call took its place.
    Cancelled,
    /// An emergency stop ended it.
    Stopped,
    /// It did not run: a person has to confirm it.
    ConfirmationRequired,
    /// It never began; `reason` says why.
    NotStarted,
    /// A word that only a newer service has.
    #[serde(untagged)]
    #[schemars(!untagged, skip)]
    Other(String),
}

impl Default for RunStatus {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl RunStatus {
    /// The word used on the bus.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
            Self::ConfirmationRequired => "confirmation_required",
            Self::NotStarted => "not_started",
            Self::Other(word) => word,
        }
    }
}

/// `ovos.tools.plan` for a run.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RunPlanRequest {
    /// The steps, as for `ovos.tools.run`.
    #[schemars(length(min = 1, max = 64))]
    pub steps: Vec<RunStep>,
}

/// The answer to `ovos.tools.plan` for a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RunPlanResponse {
    /// Each step, in the order of the request.
    pub steps: Vec<RunStepPlan>,
}

/// The plan of one step: exactly one of `plan`, `planned_later` and `error`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct RunStepPlan {
    /// The step.
    pub id: String,
    /// The tool, as it was given.
    pub name: String,
    /// Ids of the steps that it waits for.
    pub after: Vec<String>,
    /// Its plan, where all of its arguments are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanResponse>,
    /// The values that it takes from results: the step is planned when they are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_later: Option<Vec<String>>,
    /// Why it has no plan: `Kind: message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
