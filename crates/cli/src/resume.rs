//! `ovos-tools resume`: lifts the emergency stop of a toolbox, named by its id.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::context::{Context, address};
use super::error::CliError;
use super::stop;
use client::control::{self, ControlError};
use client::payload::{ControlRequest, ResumeRequest, StatusRequest, StoppedToolbox};
use client::{Client, topic};

/// Arguments of `resume`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools resume robot      show the id of the stop, without lifting it
  ovos-tools resume robot stop-01a1f987-ec59-757e-bab2-6fe3f014069a
  ovos-tools resume all stop-01a1f987-ec59-757e-bab2-6fe3f014069a

`all` lifts the stop wherever it holds, also from toolboxes that are not installed any more.

Uses the control socket of the service on this machine, which identifies your user. If no service answers there, or --bus names
another machine, it uses the bus, over which only stops of simulators can be lifted unless `operator_tools` is set.

Look at the machine first. The id makes sure that you lift the stop you know of, and not a newer one.")]
pub struct Arguments {
    /// The toolbox, or `all`
    toolbox: String,
    /// Id of the stop to lift, as `stop` and `status` show it
    stop_id: Option<String>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let wait = context.wait();
    let Some(stop_id) = &arguments.stop_id else {
        let client = context.client().await?;
        return Err(missing_stop_id(&arguments.toolbox, &client, wait).await);
    };
    // The people of this machine may always lift a stop, and only the control socket knows them.
    let url = address(&*context.config()?).url;
    if let Some(socket) = stop::control_socket(context, &url) {
        let request = ControlRequest::Resume {
            toolbox_id: arguments.toolbox.clone(),
            stop_id: stop_id.clone(),
        };
        match control::ask(&socket, &request, wait).await {
            Ok((answer, data)) => {
                return match (data.error, data.toolboxes) {
                    (Some(error), _) => Err(CliError::Refused(error)),
                    (None, Some(toolboxes)) => show_outcome(&answer, &toolboxes, context),
                    (None, None) => Err(unconfirmed("its answer names no toolbox")),
                };
            }
            Err(ControlError::NotReached(cause)) => context.output.remark(&format!(
                "the service on this machine was not reached through {} ({cause}): asking over the bus",
                socket.display()
            )),
            // Asked once more, it may refuse what it is about to do.
            Err(ControlError::NoAnswer(cause)) => {
                return Err(unconfirmed(&format!("it did not answer: {cause}")));
            }
        }
    }
    let client = context.client().await?;
    let request = ResumeRequest {
        toolbox_id: arguments.toolbox.clone(),
        stop_id: stop_id.clone(),
    };
    let answer = client.ask(topic::RESUME, &request, wait).await?;
    context.refuse_error(&answer)?;
    let toolboxes = answer.read()?.toolboxes;
    show_outcome(&answer.data, &toolboxes, context)
}

fn unconfirmed(why: &str) -> CliError {
    CliError::Unconfirmed(format!(
        "the service on this machine did not say whether the stop is lifted ({why}): see `ovos-tools status`"
    ))
}

/// Shows what became of each toolbox.
///
/// # Errors
/// Not every one of them resumed.
fn show_outcome(
    answer: &impl Serialize,
    toolboxes: &[StoppedToolbox],
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    context
        .output
        .result(answer, |paint| stop::table(toolboxes, "resumed", paint))?;
    stop::verdict(toolboxes, "resumed")
}

/// The error for a resume without a stop id. It shows the whole command and the reason of the stop, so that a person
/// reads the reason before the stop is lifted.
async fn missing_stop_id(toolbox: &str, client: &Client, wait: Duration) -> CliError {
    let status = client.ask(topic::STATUS, &StatusRequest::default(), wait).await;
    let answer = match status.and_then(|answer| answer.read()) {
        Ok(answer) => answer,
        Err(error) => return error.into(),
    };
    if toolbox == "all" {
        return CliError::Usage(match &answer.all_latched {
            Some(all) => format!(
                "everything is in emergency stop ({}); when it is safe, run: ovos-tools resume all {}",
                all.stop_reason, all.stop_id
            ),
            None => "give the id of the stop, as `ovos-tools status` shows it: ovos-tools resume all STOP_ID"
                .to_owned(),
        });
    }
    let Some(found) = answer.toolboxes.iter().find(|it| it.toolbox_id == toolbox) else {
        let ids: Vec<String> = answer.toolboxes.into_iter().map(|it| it.toolbox_id).collect();
        let ids = super::paint::joined(&ids);
        return CliError::Usage(format!("there is no toolbox {toolbox:?}; toolboxes: {ids}"));
    };
    let reason = found
        .stop_reason
        .as_deref()
        .map_or_else(String::new, |reason| format!(" ({reason})"));
    match &found.stop_id {
        Some(stop_id) => CliError::Usage(format!(
            "{toolbox} is in emergency stop{reason}; when it is safe, run: ovos-tools resume {toolbox} {stop_id}"
        )),
        None => CliError::Usage(format!(
            "{toolbox} is not in emergency stop: there is nothing to lift"
        )),
    }
}
