//! `ovos-tools invoke`: calls a tool and waits for its end.
//!
//! The caller is responsible for the call: Ctrl-C and a `--timeout` that runs out cancel it before the program
//! ends.

use std::time::Duration;

use clap::Args;
use ovos_toolbox_wire::{Content, Outcome};
use serde_json::Value;

use super::arguments;
use super::confirm::{self, Next};
use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, milliseconds, plain};
use super::progress::View;
use client::payload::{CallOptions, CancelRequest, ContentMode, ErrorDetail, InvokeRequest, InvokeResponse};
use client::{Client, ClientError, Patience, Received, Step, topic};

/// How long to wait for the end of a call that was cancelled: motion has to come to rest first.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// Arguments of `invoke`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  ovos-tools invoke add a=1 b=2
  ovos-tools invoke add '{{\"a\": 1, \"b\": 2}}'
  ovos-tools invoke pick_object object=cup --progress --timeout-ms 60000
  ovos-tools invoke add a=1 b=2 --json | jq .result

{}

Ctrl-C cancels the call, and so does a --timeout that runs out. Where service.policy says `confirm`, a terminal is asked \
whether the call may run.", arguments::HELP))]
pub struct Arguments {
    /// Name of the tool, or the alias TOOLBOX__NAME
    name: String,
    /// Arguments of the tool, see below
    #[arg(value_name = "JSON|KEY=VALUE")]
    arguments: Vec<String>,
    /// The toolbox that owns the tool, when several own one of this name
    #[arg(long, value_name = "ID")]
    toolbox: Option<String>,
    /// Id of the call, for `cancel` and `status` [default: one that no other call has]
    #[arg(long, value_name = "ID")]
    call_id: Option<String>,
    /// End the call after this many milliseconds, waiting for subsystems included
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: Option<u64>,
    /// Show the report of all actions when the call fails
    #[arg(long)]
    detail: bool,
    /// Show waves and actions as they go
    #[arg(long)]
    progress: bool,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let args = arguments::parse(&arguments.arguments)?;
    let call_id = match &arguments.call_id {
        Some(id) => id.clone(),
        None => format!("cli-{}", uuid::Uuid::new_v4()),
    };
    let mut request = InvokeRequest {
        name: arguments.name.clone(),
        args,
        toolbox_id: arguments.toolbox.clone(),
        options: CallOptions {
            call_id: Some(call_id.clone()),
            timeout_ms: arguments.timeout_ms,
            progress: arguments.progress,
            detail: arguments.detail,
            confirm: None,
            decline: None,
            content: Some(ContentMode::Path),
        },
    };
    let client = context.client().await?;
    loop {
        let answer = match answered(&client, &request, context).await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => return Err(give_up(&client, &call_id, error).await),
            None => {
                context
                    .output
                    .remark("cancelling the call; Ctrl-C again to leave it alone");
                return Err(CliError::Refused(interrupt(&client, &call_id).await));
            }
        };
        let advice = match confirm::next(&answer, &request.options, context.output).await? {
            Next::Again(options) => {
                request.options = options;
                continue;
            }
            Next::Operator(advice) => Some(advice),
            Next::End => None,
        };
        let shown = show(&answer, arguments.detail, context);
        return shown.map_err(|error| match (error, advice) {
            (CliError::Refused(text), Some(advice)) => CliError::Refused(format!("{text}; {advice}")),
            (error, _) => error,
        });
    }
}

/// Makes a call and shows its progress until it is answered; `None` where Ctrl-C came first.
async fn answered(
    client: &Client,
    request: &InvokeRequest,
    context: &mut Context<'_, '_>,
) -> Option<Result<Received<InvokeResponse>, ClientError>> {
    let given = context.options.timeout;
    let patience = given.map_or(Patience::WhileItRuns, Patience::AtMost);
    let mut view = request
        .options
        .progress
        .then(|| View::new(context.output, &request.name));
    let followed = async {
        let mut call = client.invoke(request.clone(), patience)?;
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
    let answered = tokio::select! {
        // Polled first, so that Ctrl-C is handled before the call is sent.
        biased;
        _ = tokio::signal::ctrl_c() => None,
        answered = followed => Some(answered),
    };
    if let Some(view) = &mut view {
        view.end();
    }
    answered
}

/// Cancels a call that got no answer in time, so that it does not continue without its client.
async fn give_up(client: &Client, call_id: &str, error: ClientError) -> CliError {
    match CliError::from(error) {
        CliError::NoAnswer { url, wait, .. } => {
            let sent = client.cancel_unheard(call_id);
            client.close().await;
            let advice = match sent {
                Ok(()) => "; should the call run after all, it was asked to cancel".to_owned(),
                Err(_) => format!("; should the call run after all: `ovos-tools cancel {call_id}`"),
            };
            CliError::NoAnswer { url, wait, advice }
        }
        other => other,
    }
}

/// Cancels the call and says how it ended.
async fn interrupt(client: &Client, call_id: &str) -> String {
    let request = CancelRequest {
        call_id: call_id.to_owned(),
    };
    let asked = client.ask(topic::CANCEL, &request, CANCEL_WAIT);
    let answer = tokio::select! {
        answer = asked => answer,
        _ = tokio::signal::ctrl_c() => return format!("left alone while the call {call_id} was being cancelled"),
    };
    match answer.and_then(|answer| answer.read()) {
        Ok(cancel) if cancel.cancelled => format!("interrupted; the call {call_id} was cancelled"),
        Ok(cancel) => format!(
            "interrupted; the call {call_id} was not cancelled: {}",
            cancel.error.unwrap_or_else(|| "it had ended".to_owned())
        ),
        Err(_) => format!("interrupted; it was not confirmed that the call {call_id} was cancelled"),
    }
}

/// Shows the end of a call, with `detail` also its report if it failed.
fn show(
    answer: &Received<InvokeResponse>,
    detail: bool,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let accepted = answer.accepted();
    // From the raw data, because `null` is a result, too.
    let result = answer.data.get("result");
    context
        .output
        .result(&answer.data, |paint| match (&accepted, result) {
            (Ok(()), Some(result)) => format!("{}\n", plain(&format!("{result:#}"))),
            (Err(ClientError::Refused(refusal)), _) => refusal
                .detail
                .as_ref()
                .filter(|_| detail)
                .map_or_else(String::new, |detail| report(detail, paint)),
            _ => String::new(),
        })?;
    accepted?;
    if !context.output.json() {
        // An answer of a newer service may hold other kinds.
        let read = answer.read();
        for line in read.iter().flat_map(content) {
            context.output.remark(&line);
        }
    }
    let Some(result) = result else {
        return Err(CliError::Refused(
            "the answer holds neither a result nor an error".to_owned(),
        ));
    };
    let says_no = |key: &&str| result.get(*key) == Some(&Value::Bool(false));
    match ["ok", "success"].into_iter().find(says_no) {
        Some(key) => Err(CliError::Refused(format!("the result says {key}: false"))),
        None => Ok(()),
    }
}

/// Where the content beside a result lies, and what was left out of it.
fn content(answer: &InvokeResponse) -> Vec<String> {
    let item = |item: &Content| {
        let place = item.path.as_ref().or(item.uri.as_ref());
        let title = item
            .title
            .as_ref()
            .map_or_else(String::new, |title| format!(" ({title})"));
        format!("{}: {}{title}", item.mime_type, place.map_or("", String::as_str))
    };
    let left_out = |why: &String| format!("content is left out: {why}");
    let refused = answer.content_refused.iter().map(left_out);
    answer.content.iter().map(item).chain(refused).collect()
}

/// The report of a call that failed, a line for each action.
fn report(detail: &ErrorDetail, paint: Paint) -> String {
    let Some(report) = detail.report.as_ref().filter(|it| !it.actions.is_empty()) else {
        return String::new();
    };
    let rows = report.actions.iter().map(|action| {
        let tone = match action.outcome {
            Outcome::Completed => Tone::Good,
            _ => Tone::Bad,
        };
        let error = action.error.as_ref();
        vec![
            action.id.as_str().into(),
            Cell::toned(tone, action.outcome.as_str()),
            milliseconds(action.duration_ms).into(),
            error.map_or("", |error| error.message.as_str()).into(),
        ]
    });
    paint.table(&["ACTION", "OUTCOME", "TOOK", "ERROR"], rows)
}
