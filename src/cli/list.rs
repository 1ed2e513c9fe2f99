//! `ovos-tools list`: the tools, grouped by toolbox.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::paint::{Paint, Tone, count, first_line};
use super::schema;
use client::payload::{ListRequest, ToolEntry};
use client::topic;

/// Arguments of `list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools list
  ovos-tools list --toolbox math
  ovos-tools list --json | jq -r '.tools[].name'")]
pub struct Arguments {
    /// Only the tools of this toolbox
    #[arg(long, value_name = "ID")]
    toolbox: Option<String>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.wait();
    let client = context.client().await?;
    let request = ListRequest {
        detail: true,
        ..ListRequest::default()
    };
    let mut answer = client.ask(topic::LIST, &request, wait).await?;
    context.refuse_error(&answer)?;
    if let Some(wanted) = &arguments.toolbox {
        let all = answer.read()?.tools;
        let mut known: Vec<String> = all.into_iter().map(|tool| tool.toolbox_id).collect();
        known.sort();
        known.dedup();
        if !known.contains(wanted) {
            return Err(CliError::Refused(format!(
                "no tools of a toolbox {wanted:?}; toolboxes with tools: {}; see also `ovos-tools status`",
                super::paint::joined(&known)
            )));
        }
        if let Some(Value::Array(tools)) = answer.data.get_mut("tools") {
            tools.retain(|tool| tool.get("toolbox_id").and_then(Value::as_str) == Some(wanted));
        }
    }
    let tools = answer.read()?.tools;
    context.output.result(&answer.data, |paint| render(&tools, paint))
}

fn render(tools: &[ToolEntry], paint: Paint) -> String {
    if tools.is_empty() {
        return "no tools: put plugins into a plugins folder (`ovos-tools config` shows plugins_dir), then \
                `ovos-tools reload`\n"
            .to_owned();
    }
    let mut ids: Vec<&str> = tools.iter().map(|tool| tool.toolbox_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let groups = ids.into_iter().map(|id| {
        let tools: Vec<&ToolEntry> = tools.iter().filter(|tool| tool.toolbox_id == id).collect();
        let rows = tools.iter().map(|tool| {
            let effect = tool.meta.as_ref().map_or("-", |meta| meta.effect.as_str());
            vec![
                tool.name.as_str().into(),
                effect.into(),
                schema::summary(&tool.argument_schema).into(),
                first_line(&tool.description).into(),
            ]
        });
        format!(
            "{} ({})\n{}",
            paint.tone(Tone::Strong, id),
            count(tools.len(), "tool", "tools"),
            paint.table(&["NAME", "EFFECT", "ARGUMENTS", "DESCRIPTION"], rows)
        )
    });
    groups.collect::<Vec<_>>().join("\n")
}
