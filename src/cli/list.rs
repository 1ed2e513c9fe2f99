//! `ovos-tools list`: the tools, grouped by toolbox.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asker::{object, read};
use super::context::Context;
use super::error::CliError;
use super::paint::{Paint, Tone, count, first_line};
use super::schema;

const TOPIC: &str = "ovos.tools.list";

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

/// A tool as `list` and `get` describe it; `meta` only by this service and only when asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) argument_schema: Value,
    #[serde(default)]
    pub(super) output_schema: Value,
    #[serde(default)]
    pub(super) toolbox_id: String,
    #[serde(default)]
    pub(super) meta: Meta,
}

/// What the published contract does not say of a tool.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta {
    pub(super) effect: Option<String>,
    pub(super) category: Option<String>,
    pub(super) timeout_ms: Option<u64>,
    #[serde(default)]
    pub(super) subsystems: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    tools: Vec<Tool>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.wait();
    let mut asker = context.asker().await?;
    let mut data = asker.ask(TOPIC, object(json!({"detail": true})), wait).await?;
    context.refuse_error(&data)?;
    if let Some(wanted) = &arguments.toolbox {
        let all: Answer = read(TOPIC, &data)?;
        let mut known: Vec<String> = all.tools.into_iter().map(|tool| tool.toolbox_id).collect();
        known.sort();
        known.dedup();
        if !known.contains(wanted) {
            return Err(CliError::Refused(format!(
                "no tools of a toolbox {wanted:?}; toolboxes with tools: {}; see also `ovos-tools status`",
                super::paint::joined(&known)
            )));
        }
        if let Some(Value::Array(tools)) = data.get_mut("tools") {
            tools.retain(|tool| tool.get("toolbox_id").and_then(Value::as_str) == Some(wanted));
        }
    }
    let answer: Answer = read(TOPIC, &data)?;
    context.output.result(&data, |paint| render(&answer, paint))
}

fn render(answer: &Answer, paint: Paint) -> String {
    if answer.tools.is_empty() {
        return "no tools: put plugins into a plugins folder (`ovos-tools config` shows plugins_dir), then \
                `ovos-tools reload`\n"
            .to_owned();
    }
    let mut ids: Vec<&str> = answer.tools.iter().map(|tool| tool.toolbox_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let groups = ids.into_iter().map(|id| {
        let tools: Vec<&Tool> = answer.tools.iter().filter(|tool| tool.toolbox_id == id).collect();
        let rows = tools.iter().map(|tool| {
            vec![
                tool.name.as_str().into(),
                tool.meta.effect.as_deref().unwrap_or("-").into(),
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
