//! `ovos-tools export`: the tools in the format of a language model.

use clap::Args;
use serde_json::{Value, json};

use super::asker::{accepted, object};
use super::context::Context;
use super::error::CliError;

const TOPIC: &str = "ovos.tools.export";

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools export openai > tools.json
  ovos-tools export anthropic --toolbox math
  ovos-tools export mcp --names add,unit_convert

Prints the array of tools; with --json the whole answer, {\"format\": ..., \"tools\": [...]}.")]
pub struct Arguments {
    /// Format: openai, openai_responses, anthropic, mcp, hume or json
    #[arg(default_value = "json")]
    format: String,
    /// Only the tools of this toolbox
    #[arg(long, value_name = "ID")]
    toolbox: Option<String>,
    /// Only these tools
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    names: Vec<String>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let mut request = object(json!({"format": arguments.format}));
    if let Some(id) = &arguments.toolbox {
        request.insert("toolbox_id".into(), json!(id));
    }
    if !arguments.names.is_empty() {
        request.insert("names".into(), json!(arguments.names));
    }
    let wait = context.wait();
    let data = context.asker().await?.ask(TOPIC, request, wait).await?;
    context.output.result(&data, |_| {
        let tools = data.get("tools").unwrap_or(&Value::Null);
        // A value that came as JSON always goes as JSON; an error answer has nothing to show here.
        if tools.is_null() {
            String::new()
        } else {
            format!("{tools:#}\n")
        }
    })?;
    accepted(&data)
}
