//! The tools of a toolbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

/// The effect of a tool or an action on the world. It determines reservation, cancellation and behaviour in an
/// emergency stop.
// No default: an omitted effect would count as a harmless one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing changes. Reserves nothing, works while latched.
    Read,
    /// Changes something, moves nothing. Refused while latched.
    Write,
    /// Moves a machine. Refused while latched, halted on cancel and timeout.
    Motion,
    /// Brings the machine to safety. Goes first, runs to its end, works while latched.
    Safe,
    /// Emergency stop. Never queued, never validated, never refused.
    Stop,
    /// Lifts the latch. For an operator, not for a model.
    Resume,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Motion,
        Self::Safe,
        Self::Stop,
        Self::Resume,
    ];

    /// Whether the toolbox has to be able to halt tools of this effect, because they concern motion.
    #[must_use]
    pub fn needs_halt(self) -> bool {
        match self {
            Self::Motion | Self::Safe | Self::Stop => true,
            Self::Read | Self::Write | Self::Resume => false,
        }
    }

    /// The word used on the bus and in plans.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Motion => "motion",
            Self::Safe => "safe",
            Self::Stop => "stop",
            Self::Resume => "resume",
        }
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One tool, as `tools()` returns it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDefinition {
    /// The name for callers: `[a-zA-Z_][a-zA-Z0-9_-]*`, at most 64 characters, unique in its toolbox.
    pub name: String,
    /// What the tool is for; models choose tools by it.
    #[serde(default)]
    pub description: String,
    /// A heading to group tools under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The tool's effect on the world.
    pub effect: Effect,
    /// Default duration limit of its actions, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Only for the effect `safe`: the arguments of each call that an agent makes of this tool when a run that moved what the call
    /// holds has ended. None is made by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_end: Vec<Object>,
    /// Only in a program, and only for the effects `read` and `write`; elsewhere it means nothing: the toolbox converts and
    /// validates arguments and results by itself. The service passes both on as they are, and the schemas are for callers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validates: bool,
    /// Only in a program; elsewhere it means nothing: the schemas were written for another service, such as an MCP server. The
    /// service then reads arguments to the letter of the schema, and not in the forms that models write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// JSON Schema (2020-12) of the arguments; its root is an object.
    pub argument_schema: Value,
    /// JSON Schema (2020-12) of the result; its root is an object.
    pub output_schema: Value,
}

/// What `tools()` returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// Every tool of the instance; may depend on what its backend supports.
    pub tools: Vec<ToolDefinition>,
}
