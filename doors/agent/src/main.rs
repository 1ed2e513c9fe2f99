//! The agent door: a language model that pursues a goal with the tools of a running ovos-tools.
//!
//! It is an ordinary bus client, made of [`door::Door`]. The service has no code for it, and it cannot bypass guards, latches, the
//! policy or confirmations. `run` is the loop. The modules that decide are pure: `answer` and `react` read the model's answers,
//! `batch` decides which calls run together, `budget` has the limits of a run, `end` the reasons for its end, and `state` what the
//! model sees of the world.
//!
//! ```console
//! $ ovos-tools agent --goal 'bring the cup' --url http://127.0.0.1:8080/v1
//! ```

mod answer;
mod arguments;
mod batch;
mod budget;
mod end;
mod endpoint;
mod hands;
mod interrupt;
mod news;
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
mod toolbelt;
mod view;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use client::ClientError;
use config::Config;
use door::Door;
use door::program::{self, DoorConnection, ProgramError, block_on, failed};

use crate::arguments::Arguments;
use crate::end::End;
use crate::endpoint::{Endpoint, EndpointError};
use crate::interrupt::Interrupt;
use crate::news::{Audience, News};
use crate::person::Source as KeySource;
use crate::record::{Record, RecordError, differs};
use crate::session::{Session, SessionRun};
use crate::source::Source;
use crate::toolbelt::OWN;
use crate::view::{View, print_line};

/// The name of the door on the bus.
const SOURCE: &str = "ovos-tools-agent";

/// The time between two frames of the animated line.
const TICK: Duration = Duration::from_millis(150);

/// The exit code of a replay that differs from its record.
const DIFFERS: u8 = 6;

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("{0}")]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Bus(#[from] ClientError),
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
    #[error("{0}")]
    Record(#[from] RecordError),
    #[error("{0}")]
    Tools(String),
}

impl AgentError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Endpoint(_) | Self::Tools(_) => 2,
            Self::Bus(_) => 3,
            Self::Record(_) => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = match program::arguments() {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    let verbose = "info,ovos_tools_agent=debug,door=debug";
    arguments.options.log("warn", verbose, "");
    match block_on(begin(&arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error, error.exit_code()),
    }
}

async fn begin(arguments: &Arguments) -> Result<u8, AgentError> {
    let config = arguments.options.load()?;
    let Some(connection) = DoorConnection::connect(&config, SOURCE).await? else {
        return Ok(End::Operator(String::new()).exit_code());
    };
    let door = connection.door("agent", &config.doors.agent.toolset, OWN);
    let ran = if arguments.serve {
        wait(arguments, &config, &door).await
    } else {
        goal(arguments, &config, &door).await
    };
    connection.close().await;
    ran
}

/// Waits for goals on the bus.
async fn wait(arguments: &Arguments, config: &Config, door: &Arc<Door>) -> Result<u8, AgentError> {
    let view = View::new(false, true).map_err(thread)?;
    let audience: Audience = Arc::new(move |news: &News<'_>| view.show(news));
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
    // Without a service there are no tools: the run ends with the reason.
    let listing = door.refreshed().await;
    let mut names: Vec<String> = listing.tools().iter().map(|tool| tool.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    if let Some(wrong) = arguments.unknown_tools(&names).filter(|_| !names.is_empty()) {
        return Err(AgentError::Tools(wrong));
    }
    let interrupt = Interrupt::new();
    let keys = KeySource::listen(&interrupt);
    let view = Arc::new(View::new(keys.person().is_some(), !arguments.json).map_err(thread)?);
    let audience: Audience = {
        let view = Arc::clone(&view);
        Arc::new(move |news: &News<'_>| view.show(news))
    };
    let session = Session {
        door,
        client: door.client.clone(),
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
    let SessionRun { ended, steps, start } = tokio::select! {
        begun = running => begun?,
        () = tick => return Ok(5),
        () = signalled => return Ok(5),
    };
    view.flush().await;
    let same = replayed
        .as_ref()
        .is_none_or(|record| compare(record, &steps, &start, |text| view.print_note(text)));
    view.flush().await;
    if arguments.json {
        print_line(&serde_json::to_string(&ended).unwrap_or_default());
    }
    Ok(match ended.exit_code {
        0 if !same => DIFFERS,
        code => code,
    })
}

/// Reports whether a replay made the same calls as its record, with the same outcomes.
fn compare(record: &Record, steps: &[record::Step], start: &record::Start, report: impl Fn(&str)) -> bool {
    if record.start.tools_sha256 != start.tools_sha256 {
        report("replay: the tools differ from the record");
    }
    if record.start.prompt_sha256 != start.prompt_sha256 {
        report("replay: the instructions differ from the record");
    }
    match differs(&record.steps, steps) {
        None => {
            report(&format!("replay: identical over {} steps", steps.len()));
            true
        }
        Some((step, now, then)) => {
            report(&format!("replay: step {step} differs: {now} instead of {then}"));
            false
        }
    }
}

fn thread(cause: std::io::Error) -> AgentError {
    ProgramError::machine("start a thread")(cause).into()
}
