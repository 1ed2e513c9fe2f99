//! The tools of a toolbox.

use std::borrow::Cow;

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

    /// Whether a client should be careful with tools of this effect, because what they do cannot simply be undone. What brings a
    /// machine to safety is never held up by a question.
    #[must_use]
    pub fn is_destructive(self) -> bool {
        match self {
            Self::Write | Self::Motion | Self::Resume => true,
            Self::Read | Self::Safe | Self::Stop => false,
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

/// For whom a tool is. Doors show models the tools for models, and the others only where their configuration asks for them.
/// Hidden is not refused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Language models, and people.
    #[default]
    Model,
    /// People alone: calibration, diagnostics, raw access.
    Person,
    /// Models, once what the tool needs is there: until then a door does not list it, and a search finds it.
    Unready,
}

impl Audience {
    /// Those for whom a door can be made.
    pub const ALL: [Self; 2] = [Self::Model, Self::Person];

    /// Whether it is the default.
    #[must_use]
    pub fn is_model(&self) -> bool {
        *self == Self::Model
    }

    /// The word used on the bus and in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Person => "person",
            Self::Unready => "unready",
        }
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
    /// For whom it is; `model` by default.
    #[serde(default, skip_serializing_if = "Audience::is_model")]
    pub audience: Audience,
    /// What exports and doors say otherwise of the arguments, as a merge patch (RFC 7396) of the `properties` of
    /// `argument_schema`: `null` leaves an argument out, which is accepted all the same; `{"minimum": 1}` states a bound. Arguments
    /// are validated with `argument_schema` alone.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub for_models: Object,
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

impl ToolDefinition {
    /// The schema of the arguments as exports and doors show it: `argument_schema` with what `for_models` says.
    #[must_use]
    pub fn shown_arguments(&self) -> Cow<'_, Value> {
        if self.for_models.is_empty() {
            return Cow::Borrowed(&self.argument_schema);
        }
        let mut schema = self.argument_schema.clone();
        if let Some(properties) = schema.get_mut("properties") {
            merge(properties, &self.for_models);
        }
        if let (Some(names), Some(properties)) = (
            schema.get("required").and_then(Value::as_array).cloned(),
            schema.get("properties"),
        ) {
            let is_shown = |name: &Value| name.as_str().is_some_and(|name| properties.get(name).is_some());
            schema["required"] = names.into_iter().filter(is_shown).collect();
        }
        Cow::Owned(schema)
    }
}

/// Applies a merge patch, RFC 7396.
fn merge(value: &mut Value, patch: &Object) {
    if !value.is_object() {
        *value = Value::Object(Object::new());
    }
    let Some(object) = value.as_object_mut() else {
        return;
    };
    for (key, patch) in patch {
        match patch {
            Value::Null => _ = object.shift_remove(key),
            Value::Object(patch) => merge(object.entry(key.as_str()).or_insert(Value::Null), patch),
            other => _ = object.insert(key.clone(), other.clone()),
        }
    }
}

/// What `tools()` returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// Every tool of the instance; may depend on what its backend supports.
    pub tools: Vec<ToolDefinition>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_models_see_is_a_patch_of_the_arguments() {
        let of = |patch: Value| -> ToolDefinition {
            serde_json::from_value(json!({
                "name": "turn", "effect": "motion", "output_schema": {}, "for_models": patch,
                "argument_schema": {
                    "type": "object", "required": ["deg", "vehicle"],
                    "properties": {
                        "deg": {"type": "number", "description": "Degrees."},
                        "vehicle": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                    },
                },
            }))
            .unwrap()
        };
        let plain = of(json!({}));
        assert_eq!(*plain.shown_arguments(), plain.argument_schema);
        assert!(!serde_json::to_string(&plain).unwrap().contains("for_models"));
        for (patch, properties, required) in [
            (
                json!({"deg": {"minimum": 1}, "vehicle": null}),
                json!({"deg": {"type": "number", "description": "Degrees.", "minimum": 1}}),
                json!(["deg"]),
            ),
            (
                json!({"vehicle": {"anyOf": null, "default": null, "enum": ["a"]}}),
                json!({"deg": {"type": "number", "description": "Degrees."}, "vehicle": {"enum": ["a"]}}),
                json!(["deg", "vehicle"]),
            ),
        ] {
            let tool = of(patch);
            let arguments = tool.shown_arguments();
            assert_eq!(arguments["properties"], properties);
            assert_eq!(arguments["required"], required);
            assert_eq!(tool.argument_schema, plain.argument_schema);
        }
    }
}
