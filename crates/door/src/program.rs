//! The program of a door: its options, its log, its connection to the bus, and its end on a signal.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use client::{Address, Client, ClientError};
use config::{Config, ConfigErrors, Overrides, ProcessEnvironment, Rule, Toolset};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signals::Ending;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::{Door, pattern_warnings};

/// How long most requests to the service may take.
const WAIT: Duration = Duration::from_secs(5);

/// How long the first connection to the bus is attempted: hosts start a door together with everything else.
const BUS_WAIT: Duration = Duration::from_secs(10);

/// How long a door that can do without waits for the bus at its start.
const SOON: Duration = Duration::from_secs(2);

/// The time between two attempts to connect.
const BUS_AGAIN: Duration = Duration::from_millis(250);

/// The options that every door has.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Address of the messagebus, instead of mycroft.conf's `websocket` [such as ws://127.0.0.1:8181/core]
    #[arg(long, value_name = "URL", global = true)]
    pub bus: Option<String>,
    /// Use FILE instead of the user's mycroft.conf, on top of the rest of the stack
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Log more to stderr: -v debug, -vv trace
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// End with this process, which started the door: the service
    #[arg(long, value_name = "PID", global = true, hide = true)]
    started_by: Option<u32>,
}

impl Options {
    /// Starts logging to stderr. The filter is `quiet`, or `verbose` with -v; -vv logs everything. `always` applies at every
    /// level.
    pub fn log(&self, quiet: &str, verbose: &str, always: &str) {
        let level = match self.verbose {
            0 => quiet,
            1 => verbose,
            _ => "trace",
        };
        tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(format!("{level},{always}")))
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .init();
    }

    /// Whether the service started the door: then its stderr is the log of the service, where no token belongs.
    #[must_use]
    pub fn started_by_service(&self) -> bool {
        self.started_by.is_some()
    }

    /// Reads the configuration, and logs its notices. From now on a door that the service started ends with it.
    ///
    /// # Errors
    /// All errors of the configuration, or the service has ended.
    pub fn load(&self) -> Result<Arc<Config>, ProgramError> {
        if let Some(service) = self.started_by {
            end_with(service).map_err(ProgramError::machine("end with the service"))?;
        }
        let overrides = Overrides {
            config: self.config.clone(),
            bus: self.bus.clone(),
            ..Overrides::default()
        };
        let config = Config::load(&ProcessEnvironment, &overrides, None)?;
        for notice in &config.notices {
            tracing::warn!("{notice}");
        }
        Ok(config)
    }
}

/// Has the kernel end this process in order when the service, which started it, ends in whatever way.
fn end_with(service: u32) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let parent = getppid().and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    if parent != Some(service) {
        // It ended before the kernel was told.
        return Err(std::io::Error::other(format!("process {service} is gone")));
    }
    Ok(())
}

/// Why a door cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The configuration is wrong.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// There is no bus.
    #[error("{0}")]
    Bus(#[from] ClientError),
    /// The system refuses an operation.
    #[error("cannot {what}: {cause}")]
    Machine {
        /// The operation.
        what: &'static str,
        /// The error of the system.
        cause: std::io::Error,
    },
}

impl ProgramError {
    /// Returns a function for `map_err`, which says that the system refuses `what`.
    pub fn machine(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::Machine { what, cause }
    }

    /// The exit code, with the same meaning as those of `ovos-tools`.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Bus(_) => 3,
            Self::Machine { .. } => 5,
        }
    }
}

/// The arguments of a door's program. `<program> man DIR` writes its manual pages to that folder instead, as `ovos-tools man DIR` does;
/// `scripts/install.sh` runs both.
///
/// # Errors
/// The exit code of a program that has written its pages, or could not.
pub fn arguments<A: clap::Parser>() -> Result<A, ExitCode> {
    let words: Vec<OsString> = std::env::args_os().collect();
    match words.as_slice() {
        [_, man, folder] if man == "man" => Err(write_pages(&A::command(), Path::new(folder))),
        _ => Ok(A::parse()),
    }
}

fn write_pages(command: &clap::Command, folder: &Path) -> ExitCode {
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command.clone(), folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => failed(
            &format!("cannot write manual pages to {}: {cause}", folder.display()),
            5,
        ),
    }
}

/// Runs a program to its end. A thread that is still blocked then, for example in a read of stdin, is not waited for.
///
/// # Errors
/// The errors of `program`, or there is no runtime.
pub fn block_on<T, E: From<ProgramError>>(program: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ProgramError::machine("start the async runtime"))?;
    let ran = runtime.block_on(program);
    runtime.shutdown_background();
    ran
}

/// Writes to stderr why the program failed.
pub fn failed(error: &impl Display, exit_code: u8) -> ExitCode {
    // Without stderr the exit code alone shows the failure.
    _ = writeln!(std::io::stderr(), "error: {error}");
    ExitCode::from(exit_code)
}

/// A door's connection to the bus.
pub struct DoorConnection {
    /// The bus.
    pub client: Client,
    /// Cancelled on a signal that ends the program, and when the door closes.
    pub shutdown: CancellationToken,
    rules: Vec<Rule>,
    signals: JoinHandle<()>,
}

impl DoorConnection {
    /// Connects to the bus, which may start at the same time as the door. `source` names the door in the context of its messages.
    /// `None` if the door was told to end before it was connected.
    ///
    /// # Errors
    /// There is no bus after 10 s, or the system does not allow a handler for signals.
    pub async fn connect(config: &Config, source: &str) -> Result<Option<Self>, ProgramError> {
        let shutdown = CancellationToken::new();
        let signals = on_signals(shutdown.clone()).map_err(ProgramError::machine("listen for signals"))?;
        let client = tokio::select! {
            client = connect(config, source) => client?,
            () = shutdown.cancelled() => return Ok(None),
        };
        Ok(Some(Self {
            client,
            shutdown,
            rules: config.service.policy.clone(),
            signals,
        }))
    }

    /// Connects to the bus in the background, now or when there is one: a client's host starts the door when it likes, and wants an
    /// answer soon. Waits a moment for the connection, so that the first list of tools is complete. `None` if the door was told to
    /// end.
    ///
    /// # Errors
    /// The system does not allow a handler for signals.
    pub async fn start(config: &Config, source: &str) -> Result<Option<Self>, ProgramError> {
        let shutdown = CancellationToken::new();
        let signals = on_signals(shutdown.clone()).map_err(ProgramError::machine("listen for signals"))?;
        let client = Client::start(address(config), source, WAIT);
        tokio::select! {
            connected = timeout(SOON, client.connected()) => if connected.is_err() {
                tracing::warn!(url = %config.bus.url, "no bus yet; until there is one, clients see only the stop tools");
            },
            () = shutdown.cancelled() => return Ok(None),
        }
        Ok(Some(Self {
            client,
            shutdown,
            rules: config.service.policy.clone(),
            signals,
        }))
    }

    /// Announces the door `name` to the service and returns it. `own` are the names of further tools that it shows besides those
    /// that `toolset` permits and the two stops.
    #[must_use]
    pub fn door(&self, name: &str, toolset: &Toolset, own: &[&'static str]) -> Arc<Door> {
        // The error is ignored: if the bus is away again, each beat announces the door, too.
        _ = self.client.hello(name);
        let (client, rules) = (self.client.clone(), self.rules.clone());
        let door = Door::new(client, toolset.clone(), rules, own, self.shutdown.clone());
        door.tasks.spawn(pattern_warnings::warn(
            Arc::clone(&door),
            name.to_owned(),
            toolset.clone(),
        ));
        door
    }

    /// Cancels `shutdown`, and leaves the bus.
    pub async fn close(self) {
        self.shutdown.cancel();
        self.signals.abort();
        self.client.close().await;
    }
}

fn address(config: &Config) -> Address {
    Address {
        url: config.bus.url.clone(),
        certificate: config.bus.ssl_cert.clone(),
    }
}

async fn connect(config: &Config, source: &str) -> Result<Client, ClientError> {
    let end = Instant::now() + BUS_WAIT;
    loop {
        match Client::connect(address(config), source, WAIT).await {
            Err(error) if Instant::now() < end => {
                tracing::debug!(%error, "no bus yet");
                sleep(BUS_AGAIN).await;
            }
            other => return other,
        }
    }
}

fn on_signals(shutdown: CancellationToken) -> std::io::Result<JoinHandle<()>> {
    let mut ending = Ending::listen()?;
    Ok(tokio::spawn(async move {
        let signal = ending.next().await;
        tracing::debug!("{signal}: the end");
        shutdown.cancel();
    }))
}
