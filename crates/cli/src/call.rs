//! Sends a call or a run, shows its progress, and cancels it if the caller stops waiting.

use std::time::Duration;

use clap::Args;
use ovos_toolbox_wire::Object;
use serde_json::Value;

use super::context::Context;
use super::error::CliError;
use super::output::Output;
use super::paint::plain;
use super::progress::View;
use super::shutdown::no_signals;
use client::payload::{CallOptions, CancelRequest, ContentMode};
use client::{Call, Client, ClientError, Patience, Received, Step, topic};
use signals::Ending;

/// How long to wait for the end of a call that was cancelled: motion has to come to rest first.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// What a call and a run have in common on the command line.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// The id of the call, for `cancel` and `status` [default: a new one]
    #[arg(long, value_name = "ID")]
    call_id: Option<String>,
    /// Time limit in milliseconds, which includes waiting for subsystems
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,
    /// Show the report of all actions of a call that fails
    #[arg(long)]
    pub(super) detail: bool,
    /// Show waves and actions as they go
    #[arg(long)]
    pub(super) progress: bool,
}

impl Flags {
    /// Returns the id that was given, or a new one.
    pub(super) fn call_id(&self) -> String {
        let own = self.call_id.clone();
        own.unwrap_or_else(|| format!("cli-{}", uuid::Uuid::new_v4()))
    }

    /// The options of the request.
    pub(super) fn options(&self, call_id: &str) -> CallOptions {
        CallOptions {
            call_id: Some(call_id.to_owned()),
            timeout_ms: self.timeout_ms,
            progress: self.progress,
            // Always: an answer without details does not say which arguments were ignored.
            detail: true,
            content: Some(ContentMode::Path),
            ..CallOptions::default()
        }
    }
}

/// Removes the reports of failed calls from an answer. A call that has to be confirmed keeps its details.
pub(super) fn remove_reports(answer: &mut Object) {
    if !answer.contains_key("confirm") {
        answer.shift_remove("error_detail");
    }
    let steps = answer.get_mut("steps").and_then(Value::as_array_mut);
    steps
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
        .for_each(remove_reports);
}

/// Warns of arguments that the tool did not get.
pub(super) fn warn_of_ignored(ignored: &[String], of_step: Option<&str>, output: &mut Output<'_>) {
    if ignored.is_empty() {
        return;
    }
    let step = of_step.map_or_else(String::new, |id| format!("{id}: "));
    let names = plain(&ignored.join(", ")).into_owned();
    output.remark(&format!(
        "{step}ignored arguments that the tool does not have: {names}"
    ));
}

/// Sends a call and shows its progress until it is answered. Ctrl-C and the end of the wait cancel the call.
///
/// # Errors
/// There is no answer, or the wait for it was interrupted. The error says whether the call was cancelled.
///
/// # Cancel safety
/// Not safe: a call that was sent continues without its client.
pub(super) async fn await_answer<A>(
    client: &Client,
    call_id: &str,
    mut view: Option<View>,
    context: &mut Context<'_, '_>,
    send: impl FnOnce(Patience) -> Result<Call<A>, ClientError>,
) -> Result<Received<A>, CliError> {
    let limit = context.options.timeout;
    let patience = limit.map_or(Patience::WhileItRuns, Patience::AtMost);
    let followed = async {
        let mut call = send(patience)?;
        loop {
            match call.next().await? {
                Step::Answer(answer) => break Ok(answer),
                Step::Progress(progress) => {
                    if let Some(view) = &mut view {
                        view.show(&progress, context.output);
                    }
                }
            }
        }
    };
    // A terminal that closes ends the call, too: the person who watched it is gone.
    let mut ending = Ending::listen().map_err(no_signals)?;
    let answered = tokio::select! {
        // Polled first, so that Ctrl-C is handled before the call is sent.
        biased;
        _ = ending.next() => None,
        answered = followed => Some(answered),
    };
    if let Some(view) = &mut view {
        view.end();
    }
    match answered {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => Err(cancel_unanswered(client, call_id, error).await),
        None => {
            context
                .output
                .remark("cancelling the call; Ctrl-C again to exit without waiting for it");
            Err(CliError::Refused(
                cancel_interrupted(client, call_id, &mut ending).await,
            ))
        }
    }
}

/// Cancels a call that got no answer in time, so that it does not continue without its client.
async fn cancel_unanswered(client: &Client, call_id: &str, error: ClientError) -> CliError {
    match CliError::from(error) {
        CliError::NoAnswer { url, wait, .. } => {
            let sent = client.cancel_unheard(call_id);
            client.close().await;
            let advice = match sent {
                Ok(()) => "; a cancel was sent in case the call starts later".to_owned(),
                Err(_) => format!("; if the call starts later, run `ovos-tools cancel {call_id}`"),
            };
            CliError::NoAnswer { url, wait, advice }
        }
        other => other,
    }
}

/// Cancels the call and says how it ended.
async fn cancel_interrupted(client: &Client, call_id: &str, ending: &mut Ending) -> String {
    let request = CancelRequest {
        call_id: call_id.to_owned(),
    };
    let asked = client.ask(topic::CANCEL, &request, CANCEL_WAIT);
    let answer = tokio::select! {
        answer = asked => answer,
        _ = ending.next() => return format!("exited before the call {call_id} was known to be cancelled; check `ovos-tools status`"),
    };
    match answer.and_then(|answer| answer.read()) {
        Ok(cancel) if cancel.cancelled => format!("interrupted; the call {call_id} was cancelled"),
        Ok(cancel) => format!(
            "interrupted; the call {call_id} was not cancelled: {}",
            cancel.error.unwrap_or_else(|| "it had ended".to_owned())
        ),
        Err(_) => format!(
            "interrupted; the cancel of the call {call_id} was not confirmed; check `ovos-tools status`"
        ),
    }
}
