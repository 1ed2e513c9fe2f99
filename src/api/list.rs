//! `ovos.tools.list` and `ovos.tools.get`.

use std::sync::Arc;

use ovos_toolbox_wire::{Effect, FailureKind};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{OrError, WireError};
use super::keys::{effect, flag, text};
use super::request::Request;
use super::resolve::Name;
use super::state::Api;
use crate::registry::Tool;
use client::payload::{ListResponse, ToolMeta};

/// A tool in an answer: the JSON that was made when its toolbox was loaded, or an entry with `meta`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ListedTool {
    Published(PublishedEntry),
    Detailed(DetailedEntry),
}

/// A tool with its `meta`, which is written from the registry's definition when it is sent.
pub(super) struct DetailedEntry {
    tool: Arc<Tool>,
    exported: String,
}

impl Serialize for DetailedEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// As [`ToolEntry`](client::payload::ToolEntry).
        #[derive(Serialize)]
        struct Entry<'a> {
            name: &'a str,
            description: &'a str,
            argument_schema: &'a Value,
            output_schema: &'a Value,
            toolbox_id: &'a str,
            meta: ToolMeta,
        }
        let definition = &self.tool.compiled.definition;
        Entry {
            name: &definition.name,
            description: &definition.description,
            argument_schema: &definition.argument_schema,
            output_schema: &definition.output_schema,
            toolbox_id: &self.tool.toolbox_id,
            meta: meta(&self.tool, &self.exported),
        }
        .serialize(serializer)
    }
}

/// A tool whose JSON is shared with the registry, so that a list copies nothing.
pub(super) struct PublishedEntry(Arc<Tool>);

impl Serialize for PublishedEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry: &RawValue = &self.0.entry;
        entry.serialize(serializer)
    }
}

/// What the five fields of the published contract do not say of a tool.
pub(super) fn meta(tool: &Tool, exported: &str) -> ToolMeta {
    let definition = &tool.compiled.definition;
    ToolMeta {
        exported: exported.to_owned(),
        host: tool.host.clone(),
        category: definition.category.clone(),
        effect: definition.effect,
        audience: definition.audience,
        timeout_ms: definition.timeout_ms,
        subsystems: (definition.effect == Effect::Read).then(Vec::new),
        agent_end: definition.agent_end.clone(),
    }
}

impl ListedTool {
    /// The entry of the published contract, without `meta`.
    pub(super) fn new(tool: &Arc<Tool>) -> Self {
        Self::Published(PublishedEntry(tool.clone()))
    }

    /// The entry with `meta`, of which the exported name is a part.
    pub(super) fn detailed(tool: &Arc<Tool>, exported: &str) -> Self {
        Self::Detailed(DetailedEntry {
            tool: tool.clone(),
            exported: exported.to_owned(),
        })
    }
}

impl Api {
    /// The data of the answer.
    pub(super) fn list(&self, request: &Request) -> Result<Arc<RawValue>, WireError> {
        let data = &request.data;
        // An unreadable flag counts as absent, because the published contract ignores the data of this request. An
        // unreadable filter is an error: a client that asks for tools that read must not get tools that move something.
        let detail = flag(data, "detail").unwrap_or(false);
        let (toolbox_id, effect) = (text(data, "toolbox_id")?, effect(data)?);
        let part = self.open_pages.part(&self.registry, data)?;
        let key = || format!("list {detail} {effect:?} {toolbox_id:?}");
        self.list_cache.get_or_make(&part, key, || {
            let page = part.page(|tool| {
                toolbox_id.as_ref().is_none_or(|id| tool.toolbox_id == *id)
                    && effect.is_none_or(|effect| tool.effect() == effect)
            });
            let tools = page.tools.iter().map(|(tool, exported)| match detail {
                true => ListedTool::detailed(tool, exported),
                false => ListedTool::new(tool),
            });
            Ok(ListResponse {
                tools: tools.collect(),
                next_cursor: self.next_cursor(&part, page.next),
            })
        })
    }

    pub(super) fn get(&self, request: &Request) -> OrError<ListedTool> {
        let name = Name::of(&request.data);
        let found = self.resolve_named(&name, &request.data).and_then(|mut tools| {
            let name = name.text();
            let detail = flag(&request.data, "detail")?;
            match (tools.pop(), tools.is_empty()) {
                (Some(tool), true) if tool.is_loaded() && !detail => Ok(ListedTool::new(&tool)),
                (Some(tool), true) if tool.is_loaded() => {
                    let snapshot = self.registry.snapshot();
                    let mut called = snapshot.called();
                    let called = called.find(|(other, _)| Arc::ptr_eq(other, &tool));
                    // A reload since then may have removed the tool: then it is shown by its own name.
                    Ok(ListedTool::detailed(
                        &tool,
                        called.map_or(tool.name(), |(_, exported)| exported),
                    ))
                }
                (Some(_), true) => Err(WireError::unknown_tool(name)),
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
