//! `ovos-tools cancel`: ends a running or queued call.

use clap::Args;

use super::context::Context;
use super::error::CliError;
use super::paint::plain;
use client::payload::CancelRequest;
use client::topic;

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
    let request = CancelRequest {
        call_id: arguments.call_id.clone(),
    };
    let wait = context.wait();
    let client = context.client().await?;
    let answer = client.ask(topic::CANCEL, &request, wait).await?;
    let cancel = answer.read()?;
    context.output.result(&answer.data, |_| match cancel.cancelled {
        true => format!(
            "cancelled {} ({})\n",
            plain(&arguments.call_id),
            plain(&cancel.state)
        ),
        false => String::new(),
    })?;
    if cancel.cancelled {
        return Ok(());
    }
    let why = cancel
        .error
        .unwrap_or_else(|| format!("the call is {}", cancel.state));
    Err(CliError::Refused(format!(
        "{} was not cancelled: {why}",
        arguments.call_id
    )))
}
