//! `ovos-tools invoke`: calls a tool and waits for its end.
//!
//! The caller is responsible for the call: Ctrl-C and a `--timeout` that runs out cancel it before the program
//! ends.

use clap::Args;
use ovos_toolbox_wire::{Content, Outcome};

use super::arguments;
use super::call;
use super::confirm::{self, Next};
use super::context::Context;
use super::error::CliError;
use super::paint::{Cell, Paint, Tone, milliseconds, plain};
use super::progress::View;
use client::payload::{ErrorDetail, InvokeRequest, InvokeResponse, failure_key};
use client::{ClientError, Received};

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
    #[command(flatten)]
    flags: call::Flags,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let args = arguments::parse(&arguments.arguments)?;
    let call_id = arguments.flags.call_id();
    let mut request = InvokeRequest {
        name: arguments.name.clone(),
        args,
        toolbox_id: arguments.toolbox.clone(),
        options: arguments.flags.options(&call_id),
    };
    let client = context.client().await?;
    loop {
        let shows_progress = request.options.progress;
        let view = shows_progress.then(|| View::new(context.output, &request.name));
        let send = |patience| client.invoke(request.clone(), patience);
        let mut answer = call::await_answer(&client, &call_id, view, context, send).await?;
        if !arguments.flags.detail {
            call::remove_reports(&mut answer.data);
        }
        let advice = match confirm::next(&answer, &request.options, context.output).await? {
            Next::Again(options) => {
                request.options = options;
                continue;
            }
            Next::Operator(advice) => Some(advice),
            Next::End => None,
        };
        let result = show(&answer, arguments.flags.detail, context);
        return result.map_err(|error| match (error, advice) {
            (CliError::Refused(text), Some(advice)) => CliError::Refused(format!("{text}; {advice}")),
            (error, _) => error,
        });
    }
}

/// Shows the end of a call. With `detail`, a failed call is shown with its report.
fn show(
    answer: &Received<InvokeResponse>,
    detail: bool,
    context: &mut Context<'_, '_>,
) -> Result<(), CliError> {
    let accepted = answer.accepted();
    // Read from the raw data, because `null` is a result, too.
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
        // A newer service may send kinds of content that cannot be read here; its answer has been shown then.
        let read = answer.read();
        let lines = |answer: &InvokeResponse| content(&answer.content, &answer.content_refused);
        for line in read.iter().flat_map(lines) {
            context.output.remark(&line);
        }
        let ignored = read.iter().flat_map(|answer| answer.ignored.clone());
        call::warn_of_ignored(&ignored.collect::<Vec<_>>(), None, context.output);
    }
    let Some(result) = result else {
        return Err(CliError::Refused(
            "the answer holds neither a result nor an error".to_owned(),
        ));
    };
    match failure_key(result) {
        Some(key) => Err(CliError::Refused(format!(
            "the tool reported failure ({key}: false)"
        ))),
        None => Ok(()),
    }
}

/// Describes where the content of a result is stored, and what was left out.
pub(super) fn content(content: &[Content], refused: &[String]) -> Vec<String> {
    let item = |item: &Content| {
        let place = item.path.as_ref().or(item.uri.as_ref());
        let title = item
            .title
            .as_ref()
            .map_or_else(String::new, |title| format!(" ({title})"));
        format!("{}: {}{title}", item.mime_type, place.map_or("", String::as_str))
    };
    let left_out = |why: &String| format!("content is left out: {why}");
    content
        .iter()
        .map(item)
        .chain(refused.iter().map(left_out))
        .collect()
}

/// Describes the report of a failed call, a line for each action.
pub(super) fn report(detail: &ErrorDetail, paint: Paint) -> String {
    let Some(report) = detail.report.as_ref().filter(|report| !report.actions.is_empty()) else {
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
