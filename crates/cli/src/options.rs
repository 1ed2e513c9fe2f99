//! The options of every subcommand.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

/// Options of every subcommand.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Options {
    /// Address of the messagebus, instead of mycroft.conf's `websocket` [such as ws://127.0.0.1:8181/core]
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub bus: Option<String>,
    /// Use FILE instead of the user's mycroft.conf, on top of the rest of the stack
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print the data of the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// How long to wait for the bus and for an answer [default: 5; reload: 60; invoke and run: as long as it runs]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, value_hint = ValueHint::Other)]
    pub timeout: Option<Duration>,
    /// Print only errors; the exit code shows the outcome
    #[arg(short, long, global = true, conflicts_with_all = ["json", "verbose"])]
    pub quiet: bool,
    /// Log more to stderr: -v debug, -vv trace
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Parses seconds such as `2` or `0.5`, from a millisecond to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let accepted = "expected a number of seconds from 0.001 to 86400";
    let number: f64 = text.trim().parse().map_err(|_| accepted.to_owned())?;
    if (0.001..=86_400.0).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err(accepted.to_owned())
    }
}
