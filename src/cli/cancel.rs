//! `ovos-tools cancel`: ends a running or queued call.

use clap::Args;
use serde_json::{Value, json};

use super::asker::{error_of, object};
use super::context::Context;
use super::error::CliError;
use super::paint::plain;

pub(super) const TOPIC: &str = "ovos.tools.cancel";

/// Arguments of `cancel`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools invoke pick_object object=cup --call-id fetch-1 &
  ovos-tools cancel fetch-1

`ovos-tools status` shows the ids of the calls in flight.")]
pub struct Arguments {
    /// Id of the call
    call_id: String,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let request = object(json!({"call_id": arguments.call_id}));
    let wait = context.wait();
    let data = context.asker().await?.ask(TOPIC, request, wait).await?;
    let cancelled = data.get("cancelled").and_then(Value::as_bool).unwrap_or(false);
    let state = data.get("state").and_then(Value::as_str).unwrap_or("unknown");
    context.output.result(&data, |_| match cancelled {
        true => format!("cancelled {} ({})\n", plain(&arguments.call_id), plain(state)),
        false => String::new(),
    })?;
    if cancelled {
        return Ok(());
    }
    let why = error_of(&data).unwrap_or_else(|| format!("the call is {state}"));
    Err(CliError::Refused(format!(
        "{} was not cancelled: {why}",
        arguments.call_id
    )))
}
