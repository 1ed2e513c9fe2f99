//! `ovos.tools.export`: the tools in a model's own format.

use ovos_toolbox_wire::{Effect, FailureKind};
use serde_json::Value;

use super::error::{OrError, WireError};
use super::request::{text, texts};
use super::{Api, Request};
use crate::export::{ExportTool, Format, export, exported_names};
use crate::registry::{Found, Tool};
use client::payload::ExportResponse;

impl Api {
    pub(super) fn export(&self, request: &Request) -> OrError<ExportResponse> {
        self.exported(request).into()
    }

    fn exported(&self, request: &Request) -> Result<ExportResponse, WireError> {
        let format = text(&request.data, "format")?.unwrap_or_else(|| Format::Json.name().to_owned());
        let format: Format = format
            .parse()
            .map_err(|error| WireError::new(FailureKind::ValueError, error))?;
        let toolbox_id = text(&request.data, "toolbox_id")?;
        let wanted = texts(&request.data, "names")?;
        let snapshot = self.registry.snapshot();
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
        // Names are made from all tools, exported or not: a name that is ambiguous in a call must not look unique
        // here.
        let pairs = snapshot
            .tools()
            .map(|tool| (tool.toolbox_id.as_str(), tool.name()));
        let names = exported_names(pairs);
        let tools: Vec<ExportTool<'_>> = snapshot
            .tools()
            .zip(&names)
            .filter(|(tool, _)| tool.effect() != Effect::Resume)
            .filter(|(tool, _)| toolbox_id.as_ref().is_none_or(|id| tool.toolbox_id == *id))
            .filter(|(tool, exported)| {
                wanted
                    .as_ref()
                    .is_none_or(|wanted| wanted.iter().any(|name| goes_by(tool, exported, name)))
            })
            .map(|(tool, exported_name)| ExportTool {
                exported_name,
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
