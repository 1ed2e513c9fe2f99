//! `ovos.tools.list` and `ovos.tools.get`.

use std::sync::Arc;

use ovos_toolbox_wire::{Effect, FailureKind, Object};
use serde::Serialize;
use serde_json::value::RawValue;

use super::error::{OrError, WireError};
use super::request::{effect, flag, text};
use super::{Api, Request};
use crate::registry::Tool;
use client::payload::{ListResponse, ToolEntry, ToolMeta};

/// A tool with its `meta`.
fn detailed(tool: &Tool) -> ToolEntry {
    let definition = &tool.compiled.definition;
    let subsystems = (definition.effect == Effect::Read).then(Vec::new);
    ToolEntry {
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
            agent_end: definition.agent_end.clone(),
        }),
    }
}

/// A tool in an answer: the JSON that was made when its toolbox was loaded, or an entry with `meta`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Listed {
    Published(Shared),
    Detailed(Box<ToolEntry>),
}

/// A tool whose JSON is shared with the registry, so that a list copies nothing.
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
            Self::Detailed(Box::new(detailed(tool)))
        } else {
            Self::Published(Shared(tool.clone()))
        }
    }
}

impl Api {
    pub(super) fn list(&self, request: &Request) -> OrError<ListResponse<Listed>> {
        let listed = self.listed(&request.data);
        listed.map(|tools| ListResponse { tools }).into()
    }

    fn listed(&self, data: &Object) -> Result<Vec<Listed>, WireError> {
        // An unreadable flag counts as absent, because the published contract ignores the data of this request. An
        // unreadable filter is an error: a client that asks for tools that read must not get tools that move something.
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

    pub(super) fn get(&self, request: &Request) -> OrError<Listed> {
        let found = self.resolve(&request.data).and_then(|(name, mut tools)| {
            let detail = flag(&request.data, "detail")?;
            match (tools.pop(), tools.is_empty()) {
                (Some(tool), true) if tool.is_loaded() => Ok(Listed::new(&tool, detail)),
                (Some(_), true) => Err(WireError::unknown_tool(&name)),
                // A call of this name would run all of these stops, but to show one of them would be a guess.
                _ => Err(WireError::new(
                    FailureKind::AmbiguousToolError,
                    format!("'{name}' is owned by several toolboxes; give toolbox_id"),
                )),
            }
        });
        found.into()
    }
}
