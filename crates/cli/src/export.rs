//! `ovos-tools export`: the tools in the format of a language model.

use clap::Args;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use client::payload::ExportRequest;
use client::topic;

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
    let request = ExportRequest {
        format: Some(arguments.format.clone()),
        toolbox_id: arguments.toolbox.clone(),
        names: (!arguments.names.is_empty()).then(|| arguments.names.clone()),
        ..ExportRequest::default()
    };
    let wait = context.wait();
    let client = context.client().await?;
    let answer = client.ask_all(topic::EXPORT, &request, wait).await?;
    context.output.result(&answer.data, |_| {
        let tools = answer.data.get("tools").unwrap_or(&Value::Null);
        // A value that was parsed from JSON can always be written as JSON; an error answer has no tools to show.
        if tools.is_null() {
            String::new()
        } else {
            format!("{tools:#}\n")
        }
    })?;
    Ok(answer.accepted()?)
}
