//! Plans and the start of an action.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Effect, Object};

/// A node of a call's graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// Unique in its plan. Where it is missing the service uses `name`, or `name:subsystem` when the name repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What is done.
    pub name: String,
    /// What it is done with. Two actions that share one never overlap; `all` and `<unit>/all` conflict with every one.
    #[serde(default)]
    pub subsystems: Vec<String>,
    /// Handed to `start` unchanged.
    #[serde(default)]
    pub params: Object,
    /// Ids or names of the actions that come first; a name means every action that bears it.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// How long it may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its own effect; the tool's where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

impl Action {
    /// An action with a name and nothing else.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// What `plan()` returns: at least one action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The actions, in the order in which those of one subsystem run.
    pub actions: Vec<Action>,
}

/// Who calls, as an action sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallIdentity {
    /// Names the call on the bus and in the logs.
    pub call_id: String,
    /// The toolbox that runs it.
    pub toolbox_id: String,
    /// The tool that was called.
    pub tool: String,
    /// Session of the message that asked, when it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Language of that session, such as `en-US`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// `context.source` of that message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Milliseconds this action may take, from now.
    #[serde(default)]
    pub deadline_ms: u64,
    /// The stop epoch the call was planned under; a start with an older one than the latest stop is dropped.
    #[serde(default)]
    pub stop_epoch: u64,
    /// Whether the toolbox is in emergency stop: only what may run then gets here, and whatever of it moves must not. A
    /// toolbox whose process began after the stop has no other way to know.
    #[serde(default)]
    pub latched: bool,
    /// Whether an operator asks (the service runs with `operator_tools`): in some states a `safe` tool is for them alone.
    #[serde(default)]
    pub operator: bool,
}

/// The action to start, as `start()` sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionIdentity {
    /// Unique in its plan.
    pub id: String,
    /// What is done.
    pub name: String,
    /// What it is done with.
    #[serde(default)]
    pub subsystems: Vec<String>,
    /// From the plan; the tool's prepared arguments where the toolbox has no plan for the tool.
    #[serde(default)]
    pub params: Object,
    /// What it does to the world.
    pub effect: Effect,
}

/// What `start()` receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// Who calls.
    pub call: CallIdentity,
    /// What to do.
    pub action: ActionIdentity,
    /// What the actions it depends on returned, by their id.
    #[serde(default)]
    pub inputs: Object,
}
