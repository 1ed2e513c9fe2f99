//! The agent door: a language model that pursues a goal with the tools of a running ovos-tools.
//!
//! It is a bus client like any other, made of [`door::Door`]; the service does not know it, and nothing of it is a way around
//! guards, latch, policy or confirmation. `run` is the loop; what decides in it is pure: `answer` and `react` read what a model
//! says, `batch` says which calls run together, `budget` how far a run may go, `end` why it ended, `state` what the model sees of
//! the world.

mod act;
mod answer;
mod arguments;
mod batch;
mod budget;
mod end;
mod endpoint;
mod interrupt;
mod person;
mod prompt;
mod react;
mod record;
mod run;
mod serve;
mod session;
mod settings;
mod source;
mod state;
mod tell;
mod toolbelt;
mod view;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use client::ClientError;
use config::{Config, ConfigErrors, Overrides, ProcessEnvironment};
use door::{Door, program};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::arguments::Arguments;
use crate::end::End;
use crate::endpoint::{Endpoint, EndpointError};
use crate::interrupt::Interrupt;
use crate::person::Source as KeySource;
use crate::record::{Record, RecordError, differs};
use crate::session::{Begun, Session};
use crate::source::Source;
use crate::tell::{Audience, Tell};
use crate::toolbelt::OWN;
use crate::view::View;

/// How the door names itself on the bus.
const SOURCE: &str = "ovos-tools-agent";

/// How often the line that moves does.
const TICK: Duration = Duration::from_millis(150);

/// The exit code of a replay that differs from its record.
const DIFFERS: u8 = 6;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    #[error("{0}")]
    Bus(#[from] ClientError),
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
    #[error("{0}")]
    Record(#[from] RecordError),
    #[error("{what}: {cause}")]
    Machine {
        what: &'static str,
        cause: std::io::Error,
    },
}

impl AgentError {
    /// As those of `ovos-tools`.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Endpoint(_) => 2,
            Self::Bus(_) => 3,
            Self::Record(_) | Self::Machine { .. } => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log(arguments.verbose);
    let machine = |what| move |cause| AgentError::Machine { what, cause };
    let ran = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(machine("start the async runtime"))
        .and_then(|runtime| {
            let ran = runtime.block_on(begin(&arguments));
            runtime.shutdown_background();
            ran
        });
    match ran {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Without stderr there is nothing to tell it to.
            _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn log(verbose: u8) {
    let filter = match verbose {
        0 => "warn",
        1 => "info,ovos_tools_agent=debug,door=debug",
        _ => "trace",
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}

async fn begin(arguments: &Arguments) -> Result<u8, AgentError> {
    let overrides = Overrides {
        config: arguments.config.clone(),
        bus: arguments.bus.clone(),
        ..Overrides::default()
    };
    let config = Config::load(&ProcessEnvironment, &overrides, None)?;
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    let shutdown = CancellationToken::new();
    let signals = program::on_signals(shutdown.clone()).map_err(|cause| AgentError::Machine {
        what: "listen for signals",
        cause,
    })?;
    let client = tokio::select! {
        client = program::connect(&config, SOURCE) => client?,
        () = shutdown.cancelled() => return Ok(End::Operator(String::new()).exit_code()),
    };
    let door = Door::new(
        client.clone(),
        config.doors.agent.toolset.clone(),
        OWN,
        shutdown.clone(),
    );
    // Where the bus is away again: each beat says as much.
    _ = client.hello("agent");
    let ran = if arguments.serve {
        wait(arguments, &config, &door).await
    } else {
        goal(arguments, &config, &door).await
    };
    shutdown.cancel();
    signals.abort();
    client.close().await;
    ran
}

/// Waits for goals on the bus.
async fn wait(arguments: &Arguments, config: &Config, door: &Arc<Door>) -> Result<u8, AgentError> {
    let view = View::new(false).map_err(thread)?;
    let audience: Audience = Arc::new(move |tell: &Tell<'_>| view.show(tell));
    say("ovos-tools agent waits for ovos.tools.agent.run");
    serve::serve(door, || arguments.settings(&config.doors.agent, None), audience).await?;
    Ok(0)
}

/// Pursues the goal of the command line.
async fn goal(arguments: &Arguments, config: &Config, door: &Arc<Door>) -> Result<u8, AgentError> {
    let replayed = arguments.replay.as_deref().map(Record::read).transpose()?;
    let settings = arguments.settings(&config.doors.agent, replayed.as_ref());
    let mut source = match &replayed {
        Some(record) => Source::of_record(&record.steps),
        None => Source::Model(Box::new(Endpoint::new(&settings.door, |name| {
            std::env::var(name).ok()
        })?)),
    };
    let interrupt = Interrupt::new();
    let keys = KeySource::listen(&interrupt);
    let view = Arc::new(View::new(keys.person().is_some()).map_err(thread)?);
    let audience: Audience = {
        let view = Arc::clone(&view);
        Arc::new(move |tell: &Tell<'_>| view.show(tell))
    };
    let session = Session {
        door,
        settings: &settings,
        interrupt: &interrupt,
        audience: &audience,
        person: keys.person(),
        session_id: None,
    };
    let running = session.run(&mut source);
    let tick = async {
        let mut tick = tokio::time::interval(TICK);
        loop {
            tick.tick().await;
            if view.is_live() {
                view.tick();
            }
        }
    };
    let signalled = async {
        door.shutdown.cancelled().await;
        interrupt.raise(End::Operator("the program was told to end".to_owned()));
        std::future::pending::<()>().await;
    };
    let Begun { ended, steps, start } = tokio::select! {
        begun = running => begun?,
        () = tick => return Ok(5),
        () = signalled => return Ok(5),
    };
    view.flush().await;
    let same = replayed
        .as_ref()
        .is_none_or(|record| compare(record, &steps, &start));
    if arguments.json {
        say(&serde_json::to_string(&ended).unwrap_or_default());
    }
    Ok(match ended.exit_code {
        0 if !same => DIFFERS,
        code => code,
    })
}

/// Says whether a replay made the calls of its record, and the same came of them.
fn compare(record: &Record, steps: &[record::Step], start: &record::Start) -> bool {
    if record.start.tools_sha256 != start.tools_sha256 {
        say("replay: the tools are not those of the record");
    }
    if record.start.prompt_sha256 != start.prompt_sha256 {
        say("replay: the instructions are not those of the record");
    }
    match differs(&record.steps, steps) {
        None => {
            say(&format!("replay: the same calls in {} steps", steps.len()));
            true
        }
        Some((step, now, then)) => {
            say(&format!("replay: step {step} differs: {now} instead of {then}"));
            false
        }
    }
}

fn thread(cause: std::io::Error) -> AgentError {
    AgentError::Machine {
        what: "start a thread",
        cause,
    }
}

fn say(text: &str) {
    // Where nobody reads, there is nobody to tell.
    _ = writeln!(std::io::stdout(), "{text}");
}
