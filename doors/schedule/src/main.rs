//! The schedule door: calls and runs at a set time, at intervals, by cron, or on an event.
//!
//! It is an ordinary bus client, made of [`door::Door`]; the service has no code for it. `timing` says when, `table` what follows from
//! time, events and stops, `store` keeps that on disk, `firing` makes one call as its asker, and `serve` answers requests.

mod clock;
mod firing;
mod message;
mod ovos_events;
mod ovos_scheduler;
mod serve;
mod store;
mod table;
mod timetable;
mod timing;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use door::program::{self, DoorConnection, Options, ProgramError, block_on, failed};
use tokio::time::timeout;

use crate::serve::Scheduler;
use crate::store::{Store, Unreadable};
use crate::timing::{FASTEST, FASTEST_OF_OPERATOR};

/// The name of the door on the bus.
const SOURCE: &str = "ovos-tools-schedule";

/// How long the calls that are under way may take to end.
const END_WAIT: Duration = Duration::from_secs(5);

/// Makes calls of a running ovos-tools at a set time, at intervals, by cron, or on an event
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools-schedule",
    bin_name = "ovos-tools schedule",
    version,
    after_help = "It answers ovos.tools.schedule, .list, .cancel and .resume on the bus while it runs. With \"start\": true in \
                  service.doors.schedule the service starts it. docs/schedule.md has an example."
)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// Why the door cannot serve.
#[derive(Debug, thiserror::Error)]
enum DoorError {
    #[error("{0}")]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Store(#[from] Unreadable),
}

impl DoorError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Store(_) => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = match program::arguments() {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    let (quiet, verbose) = (
        "warn,ovos_tools_schedule=info",
        "info,ovos_tools_schedule=debug,door=debug",
    );
    arguments.options.log(quiet, verbose, "tungstenite=off");
    match block_on(run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, error.exit_code()),
    }
}

async fn run(arguments: &Arguments) -> Result<(), DoorError> {
    let config = arguments.options.load()?;
    let Some(connection) = DoorConnection::connect(&config, SOURCE).await? else {
        return Ok(());
    };
    let door = connection.door("schedule", &config.doors.schedule.toolset, &[]);
    let fastest = if config.service.operator_tools {
        FASTEST_OF_OPERATOR
    } else {
        FASTEST
    };
    let store = Store::in_folder(&config.service.state_dir);
    let is_of_ovos = config.doors.schedule.ovos_scheduler;
    let scheduler = Scheduler::new(Arc::clone(&door), store, fastest, is_of_ovos)?;
    door.refreshed().await;
    door.tasks.spawn({
        let door = Arc::clone(&door);
        async move { door.follow().await }
    });
    tracing::info!("waiting for ovos.tools.schedule");
    scheduler.serve().await;
    connection.shutdown.cancel();
    door.tasks.close();
    if timeout(END_WAIT, door.tasks.wait()).await.is_err() {
        tracing::warn!("not every call ended within {END_WAIT:?}");
    }
    connection.close().await;
    Ok(())
}
