//! `ovos-tools get`: one tool.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::paint::{Paint, Tone, milliseconds, plain};
use super::schema;
use client::payload::{GetRequest, ToolEntry};
use client::topic;

/// Arguments of `get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools get add
  ovos-tools get status --toolbox robot
  ovos-tools get add --json | jq .argument_schema")]
pub struct Arguments {
    /// Name of the tool
    name: String,
    /// The toolbox that owns it, when several own a tool of this name
    #[arg(long, value_name = "ID")]
    toolbox: Option<String>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let request = GetRequest {
        name: arguments.name.clone(),
        toolbox_id: arguments.toolbox.clone(),
        detail: true,
    };
    let wait = context.wait();
    let client = context.client().await?;
    let answer = client.ask(topic::GET, &request, wait).await?;
    context.refuse_error(&answer)?;
    let tool = answer.read()?;
    context.output.result(&answer.data, |paint| render(&tool, paint))
}

fn render(tool: &ToolEntry, paint: Paint) -> String {
    let mut facts = vec![format!(
        "{} ({})",
        paint.tone(Tone::Strong, &tool.name),
        plain(&tool.toolbox_id)
    )];
    if let Some(meta) = &tool.meta {
        facts.push(super::tool_table::effect_shown(meta.effect, meta.audience));
        facts.extend(meta.category.clone());
        facts.extend(meta.timeout_ms.map(|ms| format!("at most {}", milliseconds(ms))));
        if let Some(names) = meta.subsystems.as_ref().filter(|names| !names.is_empty()) {
            facts.push(format!("uses {}", names.join(", ")));
        }
    }
    let required: Vec<&str> = tool.argument_schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let example: String = required.iter().map(|name| format!(" {name}=...")).collect();
    format!(
        "{}\n{}\n\nArguments\n{}\nResult\n{}\nCall it with: ovos-tools invoke {}{}\n",
        facts.join(" · "),
        plain(tool.description.trim()),
        schema::table(&tool.argument_schema, paint),
        schema::table(&tool.output_schema, paint),
        plain(&tool.name),
        plain(&example)
    )
}
