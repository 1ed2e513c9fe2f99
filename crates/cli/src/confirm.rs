//! Calls that a person has to confirm. If there is a terminal, the person there is asked.

use std::io::stdin;
use std::time::Duration;

use ovos_toolbox_wire::FailureKind;
use signals::Ending;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::error::CliError;
use super::output::Output;
use super::shutdown::no_signals;
use client::payload::{CallOptions, Confirm, InvokeResponse};
use client::{ClientError, Received};

/// What to do after an answer.
pub(super) enum Next {
    /// Nothing: the call has ended.
    End,
    /// The call waits to be confirmed. Make it again with these options.
    Again(CallOptions),
    /// The call waits to be confirmed by an operator. The text says how.
    Operator(String),
}

/// Returns what to do after the answer to a call with these options.
///
/// # Errors
/// The terminal cannot be read.
///
/// # Cancel safety
/// Safe: the call waits until it expires.
pub(super) async fn next(
    answer: &Received<InvokeResponse>,
    options: &CallOptions,
    output: &mut Output<'_>,
) -> Result<Next, CliError> {
    let waits = matches!(answer.accepted(), Err(ClientError::Refused(refusal))
        if refusal.known_kind() == Some(FailureKind::ConfirmationRequired));
    if !waits {
        return Ok(Next::End);
    }
    let mut again = options.clone();
    let Some(confirm) = answer.read().ok().and_then(|answer| answer.confirm) else {
        // Only an answer with details says how the call can be confirmed.
        again.detail = true;
        return Ok(if options.detail {
            Next::End
        } else {
            Next::Again(again)
        });
    };
    (again.confirm, again.decline) = match ask_person(&confirm, output).await? {
        Some(true) => (Some(confirm.token), None),
        Some(false) => (None, Some(confirm.token)),
        None => {
            return Ok(Next::Operator(format!(
                "run `ovos-tools approve {}` on the service's machine and make the call again within a minute",
                confirm.id
            )));
        }
    };
    Ok(Next::Again(again))
}

/// Asks the person at the terminal and returns the decision; `None` if there is no person, or no answer in time.
async fn ask_person(confirm: &Confirm, output: &mut Output<'_>) -> Result<Option<bool>, CliError> {
    if !output.asks() {
        return Ok(None);
    }
    let note = confirm.note.as_ref().map(|note| format!("({note})\n"));
    output.question(&format!(
        "{}\n{}\n{}Let this run? [y/N] ",
        confirm.text,
        confirm.plan,
        note.unwrap_or_default()
    ));
    // If no answer comes, the program ends before this thread does.
    let line = spawn_blocking(|| {
        let mut line = String::new();
        stdin().read_line(&mut line).map(|_| line)
    });
    let wait = Duration::from_millis(confirm.expires_ms);
    let mut ending = Ending::listen().map_err(no_signals)?;
    let line = tokio::select! {
        line = timeout(wait, line) => line.ok().and_then(Result::ok),
        _ = ending.next() => None,
    };
    let line = line.transpose().map_err(|cause| CliError::Machine {
        what: "read the answer from the terminal".to_owned(),
        cause,
    })?;
    let Some(line) = line.filter(|line| !line.is_empty()) else {
        output.question("\n");
        return Ok(None);
    };
    Ok(Some(matches!(line.trim(), "y" | "Y" | "yes")))
}
