//! `ovos.tools.export`: the tools in a model's own format.

use std::sync::Arc;

use ovos_toolbox_wire::{Effect, FailureKind};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::WireError;
use super::request::{text, texts};
use super::{Api, Request};
use crate::export::{ExportTool, Format, export};
use crate::registry::{Found, Tool};
use client::payload::ExportResponse;

impl Api {
    /// The data of the answer.
    pub(super) fn export(&self, request: &Request) -> Result<Arc<RawValue>, WireError> {
        let format = text(&request.data, "format")?.unwrap_or_else(|| Format::Json.name().to_owned());
        let format: Format = format
            .parse()
            .map_err(|error| WireError::new(FailureKind::ValueError, error))?;
        let toolbox_id = text(&request.data, "toolbox_id")?;
        let wanted = texts(&request.data, "names")?;
        let part = self.begun.part(&self.registry, &request.data)?;
        let snapshot = &part.snapshot;
        if let Some(id) = &toolbox_id
            && snapshot.toolbox(id).is_none()
        {
            return Err(WireError::new(
                FailureKind::ValueError,
                format!("toolbox '{id}' is not loaded"),
            ));
        }
        if let Some(unknown) = wanted
            .iter()
            .flatten()
            .find(|name| matches!(snapshot.find(name, None), Found::None))
        {
            return Err(WireError::unknown_tool(unknown));
        }
        let key = || format!("export {format} {toolbox_id:?} {wanted:?}");
        self.lists.data(&part, key, || {
            let names = snapshot.exported_names();
            let named = |index: usize, tool: &Tool| {
                let by = |wanted: &Vec<String>| wanted.iter().any(|name| goes_by(tool, &names[index], name));
                wanted.as_ref().is_none_or(by)
            };
            let page = part.page(|index, tool| {
                tool.effect() != Effect::Resume
                    && toolbox_id.as_ref().is_none_or(|id| tool.toolbox_id == *id)
                    && named(index, tool)
            });
            let tools = page.tools.iter();
            let tools: Vec<ExportTool<'_>> = tools
                .map(|(index, tool)| ExportTool {
                    exported_name: &names[*index],
                    toolbox_id: &tool.toolbox_id,
                    name: tool.name(),
                    description: &tool.compiled.definition.description,
                    argument_schema: &tool.compiled.definition.argument_schema,
                    output_schema: output_schema(format, tool),
                    read_only: tool.effect() == Effect::Read,
                    destructive: tool.effect() != Effect::Read,
                })
                .collect();
            Ok(ExportResponse {
                format: format.name().to_owned(),
                tools: export(format, &tools),
                next_cursor: self.next_cursor(&part, page.next),
            })
        })
    }
}

/// The output schema to export. An MCP client refuses results that do not fit the schema, and the results of a toolbox
/// that validates by itself may not fit.
fn output_schema(format: Format, tool: &Tool) -> &Value {
    let definition = &tool.compiled.definition;
    if format == Format::Mcp && definition.validates {
        &Value::Null
    } else {
        &definition.output_schema
    }
}

fn goes_by(tool: &Tool, exported: &str, name: &str) -> bool {
    name == tool.name() || name == exported || name == tool.alias()
}
