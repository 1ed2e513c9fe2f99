//! `ovos.tools.list` and `ovos.tools.get`: what can be called.

use std::sync::Arc;

use ovos_toolbox_wire::{Effect, Object};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::WireError;
use super::request::{effect, flag, text};
use super::{Api, Request};
use crate::registry::Tool;

/// One tool, by the five published fields.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ToolEntry {
    /// What callers use.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of the arguments.
    pub argument_schema: Value,
    /// JSON Schema of the result.
    pub output_schema: Value,
    /// The toolbox that owns it.
    pub toolbox_id: String,
    /// Where the request says `"detail": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<ToolMeta>,
}

/// What the five fields do not say.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ToolMeta {
    /// A heading to group tools under.
    pub category: Option<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// How long each of its actions may take, in milliseconds, where the tool says so.
    pub timeout_ms: Option<u64>,
    /// What it holds while it runs, where that does not depend on the arguments; `ovos.tools.plan` knows it for a call.
    pub subsystems: Option<Vec<String>>,
}

impl ToolEntry {
    fn detailed(tool: &Tool) -> Self {
        let definition = &tool.compiled.definition;
        let subsystems = (definition.effect == Effect::Read).then(Vec::new);
        Self {
            name: definition.name.clone(),
            description: definition.description.clone(),
            argument_schema: definition.argument_schema.clone(),
            output_schema: definition.output_schema.clone(),
            toolbox_id: tool.toolbox_id.clone(),
            meta: Some(ToolMeta {
                category: definition.category.clone(),
                effect: definition.effect,
                timeout_ms: definition.timeout_ms,
                subsystems,
            }),
        }
    }
}

/// A tool on its way to the wire: as it was written when its toolbox was loaded, or with `meta`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Listed {
    Published(Shared),
    Detailed(Box<ToolEntry>),
}

/// The JSON of a tool that is shared with the registry, so that listing copies nothing.
pub(super) struct Shared(Arc<Tool>);

impl Serialize for Shared {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry: &RawValue = &self.0.entry;
        entry.serialize(serializer)
    }
}

impl Listed {
    pub(super) fn new(tool: &Arc<Tool>, detail: bool) -> Self {
        if detail {
            Self::Detailed(Box::new(ToolEntry::detailed(tool)))
        } else {
            Self::Published(Shared(tool.clone()))
        }
    }
}

/// The answer to `ovos.tools.list`: the tools, or an error.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ListResponse {
    Tools { tools: Vec<Listed> },
    Error { error: String },
}

/// The answer to `ovos.tools.get`: the tool, or an error.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum GetResponse {
    Tool(Listed),
    Error { error: String },
}

impl Api {
    pub(super) fn list(&self, request: &Request) -> ListResponse {
        match self.listed(&request.data) {
            Ok(tools) => ListResponse::Tools { tools },
            Err(error) => ListResponse::Error { error: error.text },
        }
    }

    fn listed(&self, data: &Object) -> Result<Vec<Listed>, WireError> {
        // What cannot be read counts as absent: the published contract ignores the data of this request. Not so a filter:
        // who asks for tools that read must not be shown those that move.
        let detail = flag(data, "detail").unwrap_or(false);
        let (toolbox_id, effect) = (text(data, "toolbox_id")?, effect(data)?);
        let wanted = |tool: &&Arc<Tool>| {
            toolbox_id.as_ref().is_none_or(|id| tool.toolbox_id == *id)
                && effect.is_none_or(|effect| tool.effect() == effect)
        };
        let snapshot = self.registry.snapshot();
        let tools = snapshot.tools().filter(wanted);
        Ok(tools.map(|tool| Listed::new(tool, detail)).collect())
    }

    pub(super) fn get(&self, request: &Request) -> GetResponse {
        let found = self.resolve(request).and_then(|(name, mut tools)| {
            let detail = flag(&request.data, "detail")?;
            match (tools.pop(), tools.is_empty()) {
                (Some(tool), true) => Ok(Listed::new(&tool, detail)),
                // Stopping them all is right for a stop of that name; showing one of them would be a guess.
                _ => Err(WireError::new(
                    "AmbiguousToolError",
                    format!("'{name}' is owned by several toolboxes; give toolbox_id"),
                )),
            }
        });
        match found {
            Ok(tool) => GetResponse::Tool(tool),
            Err(error) => GetResponse::Error { error: error.text },
        }
    }
}
