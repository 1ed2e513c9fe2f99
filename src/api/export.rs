//! `ovos.tools.export`: the tools in a model's own format.

use std::sync::Arc;

use ovos_toolbox_wire::{Effect, FailureKind};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::WireError;
use super::keys::{flag, text, texts};
use super::list::meta;
use super::missing_tool::loaded;
use super::request::Request;
use super::state::Api;
use crate::export::{ExportTool, Format, export};
use crate::registry::{Lookup, Tool};
use client::payload::{ExportResponse, ExportedTool};

impl Api {
    /// Answers `ovos.tools.export`.
    pub(super) fn export(&self, request: &Request) -> Result<Arc<RawValue>, WireError> {
        let format = text(&request.data, "format")?.unwrap_or_else(|| Format::Json.name().to_owned());
        let format: Format = format
            .parse()
            .map_err(|error| WireError::new(FailureKind::ValueError, error))?;
        let toolbox_id = text(&request.data, "toolbox_id")?;
        let wanted = texts(&request.data, "names")?;
        let detail = flag(&request.data, "detail").unwrap_or(false);
        let part = self.open_pages.part(&self.registry, &request.data)?;
        let snapshot = &part.snapshot;
        if let Some(id) = &toolbox_id
            && snapshot.toolbox(id).is_none()
        {
            return Err(WireError::new(
                FailureKind::ValueError,
                format!("toolbox '{id}' is not loaded; {}", loaded(snapshot)),
            ));
        }
        let found = wanted.as_ref().map(|names| {
            let asked = toolbox_id.as_deref();
            let tools = names.iter().map(|name| match snapshot.find(name, asked) {
                Lookup::One(tool) => Ok(vec![tool]),
                Lookup::Several(tools) => Ok(tools),
                Lookup::None => {
                    let mut error = WireError::unknown_tool(name);
                    error.text += &self.why_missing(snapshot, name, asked);
                    Err(error)
                }
            });
            tools.collect::<Result<Vec<_>, _>>().map(|tools| tools.concat())
        });
        let found = found.transpose()?;
        let key = || format!("export {format} {detail} {toolbox_id:?} {wanted:?}");
        self.list_cache.get_or_make(&part, key, || {
            let named = |tool: &Arc<Tool>| {
                let is_it = |found: &Arc<Tool>| Arc::ptr_eq(found, tool);
                found.as_ref().is_none_or(|found| found.iter().any(is_it))
            };
            let page = part.page(|tool| {
                tool.effect() != Effect::Resume
                    && toolbox_id.as_ref().is_none_or(|id| tool.toolbox_id == *id)
                    && named(tool)
            });
            let schemas: Vec<_> = page
                .tools
                .iter()
                .map(|(tool, _)| tool.compiled.definition.shown_arguments())
                .collect();
            let tools: Vec<ExportTool<'_>> = page
                .tools
                .iter()
                .zip(&schemas)
                .map(|((tool, exported_name), argument_schema)| ExportTool {
                    exported_name,
                    toolbox_id: &tool.toolbox_id,
                    name: tool.name(),
                    description: &tool.compiled.definition.description,
                    argument_schema,
                    output_schema: output_schema(format, tool),
                    effect: tool.effect(),
                })
                .collect();
            let mut tools = export(format, &tools);
            let definitions = tools.as_array_mut().into_iter().flatten();
            for (definition, (tool, exported)) in definitions.zip(&page.tools).filter(|_| detail) {
                definition["tool"] = json!(ExportedTool {
                    name: tool.name().to_owned(),
                    toolbox_id: tool.toolbox_id.clone(),
                    meta: meta(tool, exported),
                });
            }
            Ok(ExportResponse {
                format: format.name().to_owned(),
                tools,
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
