//! `ovos-tools invoke`: calls a tool and waits for its end.
//!
//! The caller is responsible for the call: Ctrl-C and a `--timeout` that runs out cancel it before the program
//! ends.

use std::cell::Cell;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::arguments;
use super::asker::{Asker, Data, error_of, object};
use super::context::Context;
use super::error::CliError;
use super::paint::{Paint, Tone, milliseconds};
use super::progress::{self, View};
use super::{cancel, paint};
use bus::Message;

const TOPIC: &str = "ovos.tools.invoke";

/// Asked beside a call, to learn whether a service is there: a call may take hours.
const SIGN_OF_LIFE: &str = "ovos.tools.get";

/// How long to wait for that, unless `--timeout` says it.
const SIGN_OF_LIFE_WAIT: Duration = Duration::from_secs(5);

/// As long as a call runs: `tokio` needs an end, the service bounds every call by far less.
const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long to wait for the end of a call that was cancelled: what moves comes to rest first.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// What the answer to a call may come after its own `timeout_ms`.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);

/// Arguments of `invoke`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  ovos-tools invoke add a=1 b=2
  ovos-tools invoke add '{{\"a\": 1, \"b\": 2}}'
  ovos-tools invoke pick_object object=cup --progress --timeout-ms 60000
  ovos-tools invoke add a=1 b=2 --json | jq .result

{}

Ctrl-C cancels the call, and so does a --timeout that runs out.", arguments::HELP))]
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

/// How the waiting ended.
enum End {
    Answered(Data),
    /// No service is there, or the time is over.
    Silent(CliError),
    Interrupted,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let args = arguments::parse(&arguments.arguments)?;
    let call_id = match &arguments.call_id {
        Some(id) => id.clone(),
        None => format!("cli-{}", uuid::Uuid::new_v4()),
    };
    let mut request = object(json!({"name": arguments.name, "args": args, "call_id": call_id}));
    if let Some(id) = &arguments.toolbox {
        request.insert("toolbox_id".into(), json!(id));
    }
    if let Some(ms) = arguments.timeout_ms {
        request.insert("timeout_ms".into(), json!(ms));
    }
    for (key, wanted) in [("detail", arguments.detail), ("progress", arguments.progress)] {
        if wanted {
            request.insert(key.into(), json!(true));
        }
    }
    let bound = arguments
        .timeout_ms
        .map(|ms| Duration::from_millis(ms) + ANSWER_MARGIN);
    let given = context.options.timeout;
    let mut asker = context.asker().await?;
    let mut view = arguments
        .progress
        .then(|| View::new(context.output, &arguments.name));
    let end = wait(&mut asker, request, given, bound, |message| {
        if let Some(view) = &mut view
            && message.kind == progress::TOPIC
            && message.data.get("call_id").and_then(Value::as_str) == Some(call_id.as_str())
        {
            view.show(&message.data, context.output);
        }
    })
    .await;
    if let Some(view) = &mut view {
        view.end();
    }
    match end? {
        End::Answered(data) => show(&data, context),
        End::Silent(error) => Err(give_up(&mut asker, &call_id, error).await),
        End::Interrupted => {
            context
                .output
                .remark("cancelling the call; Ctrl-C again to leave it alone");
            let why = interrupt(&mut asker, &call_id).await;
            Err(CliError::Refused(why))
        }
    }
}

/// Sends the call and waits for its answer: as long as `--timeout` says, else as long as a service is there.
async fn wait(
    asker: &mut Asker,
    request: Data,
    given: Option<Duration>,
    bound: Option<Duration>,
    mut other: impl FnMut(Message),
) -> Result<End, CliError> {
    let silence = asker.silence(given.unwrap_or(SIGN_OF_LIFE_WAIT));
    if given.is_none() {
        let name = request.get("name").cloned().unwrap_or_default();
        asker.send(SIGN_OF_LIFE, object(json!({ "name": name }))).await?;
    }
    let alive = Cell::new(false);
    let limit = given.or(bound).unwrap_or(FOREVER);
    let asked = asker.ask_hearing(TOPIC, request, limit, |message| {
        // The bus sends our own question back to us, too.
        if message.kind != SIGN_OF_LIFE {
            alive.set(true);
        }
        other(message);
    });
    let silent = async {
        match given {
            Some(_) => std::future::pending().await,
            None => {
                sleep(SIGN_OF_LIFE_WAIT).await;
                if alive.get() {
                    std::future::pending::<()>().await;
                }
            }
        }
    };
    tokio::select! {
        // First, so that Ctrl-C is listened for before the call is sent.
        biased;
        _ = tokio::signal::ctrl_c() => Ok(End::Interrupted),
        answer = asked => match answer {
            Ok(data) => Ok(End::Answered(data)),
            Err(error @ CliError::NoAnswer { .. }) => Ok(End::Silent(error)),
            Err(error) => Err(error),
        },
        () = silent => Ok(End::Silent(silence)),
    }
}

/// Asks for a cancel on the way out, so that nothing goes on that is not waited for.
async fn give_up(asker: &mut Asker, call_id: &str, error: CliError) -> CliError {
    let sent = asker
        .send(cancel::TOPIC, object(json!({ "call_id": call_id })))
        .await;
    match error {
        CliError::NoAnswer { url, wait, .. } => CliError::NoAnswer {
            url,
            wait,
            advice: match sent {
                Ok(()) => "; should the call run after all, it was asked to cancel".to_owned(),
                Err(_) => format!("; should the call run after all: `ovos-tools cancel {call_id}`"),
            },
        },
        other => other,
    }
}

/// Cancels the call and says how it ended.
async fn interrupt(asker: &mut Asker, call_id: &str) -> String {
    let request = object(json!({ "call_id": call_id }));
    let asked = asker.ask(cancel::TOPIC, request, CANCEL_WAIT);
    let answer = tokio::select! {
        answer = asked => answer,
        _ = tokio::signal::ctrl_c() => return format!("left alone while the call {call_id} was being cancelled"),
    };
    match answer {
        Ok(data) if data.get("cancelled") == Some(&Value::Bool(true)) => {
            format!("interrupted; the call {call_id} was cancelled")
        }
        Ok(data) => format!(
            "interrupted; the call {call_id} was not cancelled: {}",
            error_of(&data).unwrap_or_else(|| "it had ended".to_owned())
        ),
        Err(_) => format!("interrupted; it was not confirmed that the call {call_id} was cancelled"),
    }
}

fn show(data: &Data, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let error = error_of(data);
    context
        .output
        .result(data, |paint| match (&error, data.get("result")) {
            (None, Some(result)) => format!("{}\n", paint::plain(&format!("{result:#}"))),
            (Some(_), _) => data
                .get("error_detail")
                .map_or_else(String::new, |detail| report(detail, paint)),
            (None, None) => String::new(),
        })?;
    if let Some(text) = error {
        return Err(CliError::Refused(text));
    }
    match data.get("result") {
        None => Err(CliError::Refused(
            "the answer holds neither a result nor an error".to_owned(),
        )),
        Some(result) => match ["ok", "success"]
            .into_iter()
            .find(|key| result.get(key) == Some(&Value::Bool(false)))
        {
            Some(key) => Err(CliError::Refused(format!("the result says {key}: false"))),
            None => Ok(()),
        },
    }
}

/// The report of a call that failed, a line for each action.
fn report(detail: &Value, paint: Paint) -> String {
    let actions = detail.pointer("/report/actions").and_then(Value::as_array);
    let Some(actions) = actions.filter(|actions| !actions.is_empty()) else {
        return String::new();
    };
    let text = |action: &Value, key: &str| action.get(key).map_or_else(String::new, paint::value);
    let rows = actions.iter().map(|action| {
        let outcome = text(action, "outcome");
        let tone = if outcome == "completed" {
            Tone::Good
        } else {
            Tone::Bad
        };
        let took = action.get("duration_ms");
        vec![
            text(action, "id").into(),
            paint::Cell::toned(tone, outcome),
            took.and_then(Value::as_u64)
                .map_or_else(|| "-".to_owned(), milliseconds)
                .into(),
            action
                .pointer("/error/message")
                .map_or_else(String::new, paint::value)
                .into(),
        ]
    });
    paint.table(&["ACTION", "OUTCOME", "TOOK", "ERROR"], rows)
}
