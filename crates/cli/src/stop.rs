//! `ovos-tools stop`: emergency stop, over the bus or without it.
//!
//! It must not depend on anything that it does not need: a wrong configuration causes only a remark. If the bus takes longer than
//! 200 ms, the control socket of a service on this machine is asked; if that takes as long, the service gets a signal. It never
//! reports a stop that was not confirmed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures_util::future::try_join_all;
use serde_json::json;
use tokio::time::{sleep, timeout};
use url::Url;

use super::context::{Context, address, connect};
use super::error::CliError;
use super::paint::{Cell, Paint, Tone};
use super::pid_file::RunningService;
use client::payload::{ControlRequest, StopRequest, StopResponse, StoppedToolbox};
use client::{Address, Received, control, topic};
use config::{ProcessEnvironment, Xdg};

/// How long to wait for the bus before the control socket is asked, and for that before the service gets a signal.
const NEXT_AFTER: Duration = Duration::from_millis(200);

/// Arguments of `stop`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ovos-tools stop                  everything
  ovos-tools stop robot drone      two toolboxes

An unknown toolbox name stops all of them. Stopped toolboxes stay latched until `ovos-tools resume`. When the bus \
does not answer within 200 ms, the stop goes through the control socket of the service on this machine; when that does not \
answer within 200 ms either, the service gets SIGUSR1, which stops all its toolboxes. A stop that \
was not confirmed exits with 4: look at the machine.")]
pub struct Arguments {
    /// Toolboxes to stop; none: all of them
    #[arg(value_name = "TOOLBOX")]
    toolboxes: Vec<String>,
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let (address, state_dir) = place(context)?;
    let wait = context.wait();
    let mut requests: Vec<StopRequest> = Vec::new();
    requests.extend(arguments.toolboxes.iter().map(|id| StopRequest {
        toolbox_id: Some(id.clone()),
    }));
    if requests.is_empty() {
        requests.push(StopRequest::default());
    }
    let url = address.url.clone();
    let answer = async {
        let client = connect(address, wait).await?;
        let each = requests
            .iter()
            .map(|request| client.ask(topic::STOP, request, wait));
        Ok::<_, CliError>(try_join_all(each).await?)
    };
    tokio::pin!(answer);
    let early = tokio::select! {
        biased;
        answers = &mut answer => Some(answers),
        () = sleep(NEXT_AFTER) => None,
    };
    if !matches!(early, Some(Ok(_)))
        && let Some(stopped) = without_bus(arguments, &url, context).await
    {
        context
            .output
            .remark("the bus did not answer in time: the service was asked through its control socket");
        return show(stopped, &arguments.toolboxes, context);
    }
    let (answers, signal) = match early {
        Some(Ok(answers)) => (Ok(answers), None),
        Some(Err(error)) => (Err(error), Some(signal(&state_dir, &url, context))),
        None => {
            let signal = signal(&state_dir, &url, context);
            context.output.remark(&signal);
            // The bus may be slow rather than away.
            (answer.await, Some(signal))
        }
    };
    match (answers, signal) {
        (Ok(answers), _) => show(answered(answers)?, &arguments.toolboxes, context),
        (Err(error), Some(signal)) => Err(CliError::Unconfirmed(format!(
            "the stop is not confirmed: {error}; {signal}"
        ))),
        (Err(error), None) => Err(error),
    }
}

/// Asks the service of this machine through its control socket; `None` if it does not answer in time, or if `--bus` names the bus of
/// another service.
async fn without_bus(
    arguments: &Arguments,
    url: &Url,
    context: &Context<'_, '_>,
) -> Option<Vec<StoppedToolbox>> {
    let socket = control_socket(context, url)?;
    let mut ids: Vec<Option<String>> = arguments.toolboxes.iter().cloned().map(Some).collect();
    if ids.is_empty() {
        ids.push(None);
    }
    let answers = async {
        let mut stopped = Vec::new();
        for toolbox_id in ids {
            let request = ControlRequest::Stop { toolbox_id };
            let (_, answer) = control::ask(&socket, &request, NEXT_AFTER).await.ok()?;
            stopped.append(&mut answer.toolboxes?);
        }
        Some(stopped)
    };
    timeout(NEXT_AFTER, answers).await.ok()?
}

/// The control socket of the service that runs on this machine; `None` if none runs, or if `--bus` names the bus of another one.
pub(super) fn control_socket(context: &Context<'_, '_>, url: &Url) -> Option<PathBuf> {
    let config = context.config().ok()?;
    let service = RunningService::find(&config.service.state_dir).ok()??;
    let elsewhere = context.options.bus.is_some() && service.bus != url.as_str();
    (!elsewhere).then(|| config.control_socket())
}

/// Returns the addresses of the bus and of the state directory, from those parts of the configuration that can be read.
fn place(context: &mut Context<'_, '_>) -> Result<(Address, PathBuf), CliError> {
    let errors = match context.config() {
        Ok(config) => {
            return Ok((address(&config), config.service.state_dir.clone()));
        }
        Err(errors) => errors,
    };
    let written = context
        .options
        .bus
        .as_deref()
        .unwrap_or("ws://127.0.0.1:8181/core");
    let Ok(mut url) = Url::parse(written) else {
        return Err(errors);
    };
    if matches!(url.path(), "" | "/") {
        url.set_path("/core");
    }
    context.output.remark(&format!(
        "{errors}\nignoring this and sending the stop to {}",
        bus::shown(&url)
    ));
    let state_dir = Xdg::new(&ProcessEnvironment).state_home.join("ovos-tools");
    let address = Address {
        url,
        certificate: None,
    };
    Ok((address, state_dir))
}

/// Sends a signal to the service on this machine, and describes the result.
fn signal(state_dir: &std::path::Path, url: &Url, context: &Context<'_, '_>) -> String {
    match RunningService::find(state_dir) {
        // `--bus` with a different address means a service on another machine.
        Ok(Some(service)) if context.options.bus.is_some() && service.bus != url.as_str() => format!(
            "the service on this machine (process {}) uses {} and was not signalled",
            service.pid,
            Url::parse(&service.bus).map_or_else(|_| "another bus".to_owned(), |bus| bus::shown(&bus))
        ),
        Ok(Some(service)) => match service.stop() {
            Ok(()) => format!(
                "the bus did not answer in time: SIGUSR1 sent to the service on this machine (process {}), which \
                 stops all its toolboxes",
                service.pid
            ),
            Err(error) => format!(
                "SIGUSR1 to the service on this machine (process {}): {error}",
                service.pid
            ),
        },
        Ok(None) => format!(
            "no service on this machine to signal (no process id in {})",
            state_dir.display()
        ),
        Err(error) => format!("no service on this machine to signal: {error}"),
    }
}

/// What the answers say of all toolboxes.
fn answered(answers: Vec<Received<StopResponse>>) -> Result<Vec<StoppedToolbox>, CliError> {
    let mut all = Vec::new();
    for answer in answers {
        all.extend(answer.read()?.toolboxes);
    }
    Ok(all)
}

fn show(all: Vec<StoppedToolbox>, asked: &[String], context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let data = json!({ "toolboxes": all });
    context.output.result(&data, |paint| render(&all, paint))?;
    for id in asked
        .iter()
        .filter(|id| all.iter().all(|it| it.toolbox_id != **id))
    {
        let remark = format!("there is no toolbox `{id}`, so the stop went to all of them");
        context.output.remark(&remark);
    }
    verdict(&all, "stopped")
}

fn render(all: &[StoppedToolbox], paint: Paint) -> String {
    if all.is_empty() {
        return "no toolboxes to stop\n".to_owned();
    }
    let mut text = table(all, "stopped", paint);
    let latched: Vec<String> = all
        .iter()
        .filter_map(|it| {
            Some(format!(
                "ovos-tools resume {} {}",
                it.toolbox_id,
                it.stop_id.as_deref()?
            ))
        })
        .collect();
    if !latched.is_empty() {
        text += &format!(
            "\nWhen it is safe, run:\n  {}\n",
            super::paint::plain(&latched.join("\n  "))
        );
    }
    text
}

/// Returns a line for each toolbox.
pub(super) fn table(all: &[StoppedToolbox], done: &str, paint: Paint) -> String {
    let rows = all.iter().map(|it| {
        vec![
            Cell::toned(Tone::Strong, it.toolbox_id.as_str()),
            if it.ok {
                Cell::toned(Tone::Good, done)
            } else {
                Cell::toned(Tone::Bad, format!("NOT {done}"))
            },
            it.stop_id.as_deref().unwrap_or("-").into(),
            it.error.as_deref().unwrap_or("").into(),
        ]
    });
    paint.table(&["TOOLBOX", "STATE", "STOP ID", "ERROR"], rows)
}

/// Returns `Err` if a toolbox did not stop or resume.
pub(super) fn verdict(all: &[StoppedToolbox], done: &str) -> Result<(), CliError> {
    let failed: Vec<String> = all
        .iter()
        .filter(|it| !it.ok)
        .map(|it| match &it.error {
            Some(error) => format!("{}: {error}", it.toolbox_id),
            None => it.toolbox_id.clone(),
        })
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(CliError::Refused(format!("not {done}: {}", failed.join("; "))))
}
