//! `ovos-tools serve`: runs the service until a signal ends it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use ::bus::shown;
use ::config::{Config, EmbeddedBus, Overrides, ProcessEnvironment};
use cli::{CliError, Context, Paint, PidFile, Tone, count, no_signals, plain, shut_down_on_signal};
use logs::LogOptions;
use ovos_tools::service::{ServiceError, Start, StartSummary};

/// Arguments of `serve`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  ovos-tools serve
  ovos-tools serve --plugins ./plugins --embedded-bus auto --console
  ovos-tools serve --bus ws://192.168.1.5:8181/core --log-json

SIGTERM, Ctrl-C and a closed terminal end the service: motion is halted first. SIGUSR1 is an emergency stop of everything.")]
pub(crate) struct Arguments {
    /// Where plugins are looked for, instead of the configured folders; may be given several times
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    plugins: Vec<PathBuf>,
    /// When to run an embedded messagebus [default: embedded_bus of the configuration, else never]
    #[arg(long, value_enum, value_name = "WHEN")]
    embedded_bus: Option<EmbeddedBusMode>,
    /// Also load the packaged toolboxes that drive a simulator, without a section that asks for them
    #[arg(long)]
    simulators: bool,
    /// Also start the page in a browser, `ovos-tools console`
    #[arg(long)]
    console: bool,
    /// Log JSON, one object a line
    #[arg(long)]
    log_json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EmbeddedBusMode {
    /// Never: connect to the messagebus that is there
    Never,
    /// When nothing listens on the configured address, and that address is on this machine
    Auto,
    /// Always: fail if the port is taken
    Always,
}

impl From<EmbeddedBusMode> for EmbeddedBus {
    fn from(mode: EmbeddedBusMode) -> Self {
        match mode {
            EmbeddedBusMode::Never => Self::Never,
            EmbeddedBusMode::Auto => Self::Auto,
            EmbeddedBusMode::Always => Self::Always,
        }
    }
}

pub(super) async fn run(arguments: &Arguments, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    let overrides = Overrides {
        plugins: arguments.plugins.clone(),
        embedded_bus: arguments.embedded_bus.map(EmbeddedBus::from),
        simulators: arguments.simulators,
        console: arguments.console,
        given_may_be_copy: true,
        ..context.overrides()
    };
    let config = Config::load(&ProcessEnvironment, &overrides, None)?;
    let options = LogOptions {
        json: arguments.log_json,
        file: true,
    };
    for folder in arguments.plugins.iter().filter(|folder| !folder.is_dir()) {
        let remark = format!("--plugins {}: there is no such folder", folder.display());
        context.output.remark(&remark);
    }
    let logs = context.start_logs(&config, options)?;
    let shutdown = shut_down_on_signal()?;
    // From here on SIGUSR1 does not end the process, so the id of the process may be published.
    let _emergency = signal(SignalKind::user_defined1()).map_err(no_signals)?;
    let _pid_file = PidFile::claim(&config.service.state_dir, config.bus.url.as_str())?;
    let start = Start {
        config,
        overrides,
        logs: Some(logs),
        shutdown,
    };
    service(start, context).await
}

/// Runs the service and prints what it loaded.
async fn service(start: Start, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    // A failure to print does not end the service.
    let print = |started: &StartSummary| {
        let text = |paint| summary(started, paint);
        if let Err(error) = context.output.result(&started.status, text) {
            tracing::warn!(%error, "the summary was not printed");
        }
    };
    ovos_tools::service::run(start, print).await.map_err(refused)
}

/// What was loaded, what could not be loaded and why, the address of the bus, and a call to try.
fn summary(started: &StartSummary, paint: Paint) -> String {
    let status = &started.status;
    let mut text = format!(
        "ovos-tools {} on {}, ready after {} ms{}\n",
        status.service.version,
        shown(&started.bus),
        started.took.as_millis(),
        if status.closed.is_some() {
            ", closed: the configuration cannot be read"
        } else {
            ""
        }
    );
    match &started.embedded_bus {
        Some(url) => text += &format!("  messagebus: embedded, listening on {url}\n"),
        None if status.bus.connected => {}
        None => {
            text += "  messagebus: connecting; if none is running, start ovos-messagebus, or run with `--embedded-bus auto`\n";
        }
    }
    for toolbox in &status.toolboxes {
        text += &format!(
            "  {} {}: {}{}\n",
            paint.tone(Tone::Strong, &toolbox.toolbox_id),
            plain(&toolbox.version),
            count(toolbox.tools, "tool", "tools"),
            match &toolbox.stop_id {
                Some(stop_id) => format!(
                    ", in emergency stop; when it is safe, run `ovos-tools resume {} {}`",
                    plain(&toolbox.toolbox_id),
                    plain(stop_id)
                ),
                None => String::new(),
            }
        );
    }
    if let Some(all) = &status.all_latched {
        let label = paint.tone(Tone::Bad, "everything is in emergency stop");
        let stop_id = plain(&all.stop_id);
        text += &format!("  {label}; when it is safe, run `ovos-tools resume all {stop_id}`\n");
    }
    for file in &status.failed {
        let label = paint.tone(Tone::Bad, "not loaded");
        text += &format!("  {label} {}: {}\n", plain(&file.path), plain(&file.reason));
    }
    for toolbox in &status.off {
        let label = paint.tone(Tone::Warning, "off");
        text += &format!(
            "  {label} {}: {}\n",
            plain(&toolbox.toolbox_id),
            plain(&toolbox.reason)
        );
    }
    if let Some(closed) = &status.closed {
        text += &format!("  {} {}\n", paint.tone(Tone::Bad, "closed"), plain(closed));
    }
    for warning in &status.warnings {
        text += &format!("  {} {}\n", paint.tone(Tone::Warning, "warning"), plain(warning));
    }
    if status.toolboxes.is_empty() && status.failed.is_empty() && status.off.is_empty() {
        text += "  no plugins found: `ovos-tools config` shows where they are looked for (plugins_dir)\n";
    }
    if !status.failed.is_empty() || status.toolboxes.is_empty() {
        text += "  `ovos-tools doctor` shows what is missing and how to fix it\n";
    }
    text + &format!("Try: ovos-tools list --bus {}\n", shown(&started.bus))
}

/// Why the service did not start, for the command line.
fn refused(error: ServiceError) -> CliError {
    match error {
        ServiceError::Config(errors) => CliError::Config(errors),
        ServiceError::Bus(error) => CliError::Bind(error),
        error => CliError::Service(error.to_string()),
    }
}
