//! Plans and the start of an action.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Effect, Object};

/// A node of a call's graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// Unique in its plan. Where it is missing the service uses `name`, or `name:subsystem` when the name repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What to do; selects the action's handler.
    pub name: String,
    /// What it uses, such as `left_arm`. Two actions that share a subsystem never overlap; `all` and `<unit>/all`
    /// conflict with every subsystem.
    #[serde(default)]
    pub subsystems: Vec<String>,
    /// Passed to `start` unchanged.
    #[serde(default)]
    pub params: Object,
    /// Ids or names of the actions that come first; a name stands for every action of that name.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// Longest duration, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its own effect; the tool's if missing.
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
    /// What the call would do, as a sentence for the person who confirms it, by language: `{"en": "turn the robot 30 degrees to the
    /// right"}`. It completes "Shall I ...?": no capital, no full stop. Without one in the person's language English is used, and
    /// without any the service makes one from the tool and its arguments.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sentences: BTreeMap<String, String>,
}

impl From<Vec<Action>> for Plan {
    fn from(actions: Vec<Action>) -> Self {
        Self {
            actions,
            sentences: BTreeMap::new(),
        }
    }
}

/// The call, as an action sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallIdentity {
    /// Identifies the call on the bus and in the logs.
    pub call_id: String,
    /// The toolbox that runs it.
    pub toolbox_id: String,
    /// The tool that was called.
    pub tool: String,
    /// Session of the request, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Language of that session, such as `en-US`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// `context.source` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Milliseconds that this action may take, from now.
    #[serde(default)]
    pub deadline_ms: u64,
    /// The stop epoch at planning; a start with an epoch older than the latest stop is dropped.
    #[serde(default)]
    pub stop_epoch: u64,
    /// Whether the toolbox is in emergency stop. Only actions that may run during one are started then, and they must
    /// not move anything. A toolbox whose process started after the stop learns of it only here.
    #[serde(default)]
    pub latched: bool,
    /// The folder for files that the toolbox returns as content; missing if it has none, or the caller asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_dir: Option<String>,
    /// Whether the caller is an operator (the service runs with `operator_tools`); in some states a `safe` tool is
    /// reserved for operators.
    #[serde(default)]
    pub operator: bool,
}

/// The action to start, as `start()` sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionIdentity {
    /// Unique in its plan.
    pub id: String,
    /// What to do; selects the action's handler.
    pub name: String,
    /// What it uses.
    #[serde(default)]
    pub subsystems: Vec<String>,
    /// From the plan, or the tool's prepared arguments if the toolbox has no plan for the tool.
    #[serde(default)]
    pub params: Object,
    /// Its effect on the world.
    pub effect: Effect,
}

/// What `start()` receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// The call.
    pub call: CallIdentity,
    /// The action.
    pub action: ActionIdentity,
    /// Outputs of the actions that it depends on, by their id.
    #[serde(default)]
    pub inputs: Object,
}
