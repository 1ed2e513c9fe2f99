//! The command line: a file for each subcommand, and what they share.
//!
//! A subcommand that asks a service is an ordinary bus client, made of [`client::Client`]; it knows the payloads, not
//! the service. Rendering is pure (from data and [`Paint`] to text), and everything is written through one
//! [`Output`]. Read [`Cli`] first, then [`run`].

mod approve;
mod arguments;
mod bus;
mod call;
mod cancel;
mod check;
mod completions;
mod config;
mod confirm;
mod context;
mod control;
mod doctor;
mod door;
mod enable;
mod error;
mod export;
mod get;
mod install_service;
mod invoke;
mod list;
mod man;
mod new;
mod output;
mod paint;
mod pid_file;
mod plan;
mod program_host;
mod progress;
mod reload;
mod resume;
mod run;
mod schema;
mod serve;
mod status;
mod stop;
pub mod toolbox_host;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};

pub use door::become_door;
pub use error::{CliError, EXIT_MACHINE, EXIT_NO_ANSWER, EXIT_NO_BUS, EXIT_OK, EXIT_REFUSED, EXIT_USAGE};
pub use output::Output;
pub use paint::Paint;
pub use pid_file::{PidFile, PidFileError, RunningService};

use context::Context;

const EXAMPLES: &str = "\
Examples:
  ovos-tools serve --embedded-bus auto     run the service, with a bus of its own when there is none
  ovos-tools list                          which tools there are
  ovos-tools invoke add a=1 b=2            call one
  ovos-tools run morning.json              several calls, from a file
  ovos-tools plan add a=1 b=2              what a call would do, without doing it
  ovos-tools stop                          emergency stop of everything

Doors, each a program of its own with a --help of its own:
  ovos-tools mcp                           the tools for Claude, VS Code and other MCP clients
  ovos-tools voice                         the tools for a conversation with a speech service
  ovos-tools agent                         a language model that pursues a goal with the tools

Exit codes:
  0  done
  1  the answer is an error, or a result that says `ok: false` or `success: false`
  2  wrong arguments or a wrong configuration
  3  no bus, or the bus went away
  4  the bus is there, but no answer came in time
  5  this machine refused: a file, a port, a signal";

/// The arguments of the program.
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools",
    version,
    about = "Tools for a voice assistant, over the OVOS messagebus",
    long_about = "Tools for a voice assistant: `serve` runs the service that finds, plans and runs the tools of \
                  loadable toolboxes; the other subcommands talk to it over the OVOS messagebus. Without a \
                  subcommand: `serve`.",
    after_help = EXAMPLES
)]
pub struct Cli {
    /// What every subcommand understands.
    #[command(flatten)]
    pub options: Options,
    /// What to do; `serve` when it is not said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every subcommand.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Options {
    /// Address of the messagebus, instead of mycroft.conf's `websocket` [such as ws://127.0.0.1:8181/core]
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub bus: Option<String>,
    /// Configuration on top of the mycroft.conf stack, in the place of the user's file
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print the data of the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// How long to wait for the bus and for an answer [default: 5; reload: 60; invoke and run: as long as it runs]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, value_hint = ValueHint::Other)]
    pub timeout: Option<Duration>,
    /// Print nothing but errors; the exit code tells
    #[arg(short, long, global = true, conflicts_with_all = ["json", "verbose"])]
    pub quiet: bool,
    /// Log more to stderr: -v debug, -vv trace
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service (this is the default)
    Serve(serve::Arguments),
    /// Run a messagebus, for machines without ovos-messagebus
    Bus(bus::Arguments),
    /// List the tools, by toolbox
    List(list::Arguments),
    /// Show one tool: what it does, its arguments and its result
    Get(get::Arguments),
    /// Call a tool
    Invoke(invoke::Arguments),
    /// Run several calls, in which later ones may take values from the results of earlier ones
    Run(run::Arguments),
    /// Show what a call would do, wave by wave, without doing it
    Plan(plan::Arguments),
    /// Print the tools in the format of a language model
    Export(export::Arguments),
    /// Load added and changed plugins, drop removed ones
    Reload(reload::Arguments),
    /// Emergency stop, of everything or of some toolboxes
    Stop(stop::Arguments),
    /// Lift the emergency stop of a toolbox
    Resume(resume::Arguments),
    /// Approve a call that waits to be confirmed, or show what waits
    Approve(approve::Approve),
    /// Refuse a call that waits to be confirmed
    Deny(approve::Deny),
    /// Cancel a running or queued call
    Cancel(cancel::Arguments),
    /// Switch toolboxes on, such as the simulated robot and drone
    Enable(enable::Arguments),
    /// Switch toolboxes off
    Disable(enable::Arguments),
    /// Show toolboxes, running calls and counters
    Status(status::Arguments),
    /// Try out a plugin or a program and say what is wrong with it
    Check(check::Arguments),
    /// Write a toolbox to start from: a project with a tool and a test
    New(new::Arguments),
    /// Say what is missing on this machine, for what, and how to mend it
    Doctor(doctor::Arguments),
    /// Have systemd run the service for this user, from login on; or end that
    InstallService(install_service::Arguments),
    /// Show the configuration in force and which file each value came from
    Config(config::Arguments),
    /// Print the completions of a shell
    Completions(completions::Arguments),
    /// Write the manual pages; for those who make packages
    #[command(hide = true)]
    Man(man::Arguments),
    /// Host one toolbox; started by the service, not by people
    #[command(hide = true)]
    ToolboxHost(toolbox_host::Arguments),
    /// Become a program of the configuration; started by the service, not by people
    #[command(hide = true)]
    ProgramHost(program_host::Arguments),
}

impl Cli {
    /// Whether this is a server, which needs a runtime with several threads.
    #[must_use]
    pub fn is_server(&self) -> bool {
        matches!(self.command, None | Some(Command::Serve(_) | Command::Bus(_)))
    }

    /// Hosts a toolbox if the arguments ask for it, and returns the exit code. `plugin` hosts one that is a plugin.
    pub fn host_toolbox(
        &self,
        plugin: impl FnOnce(&toolbox_host::Arguments) -> ExitCode,
    ) -> Option<ExitCode> {
        match &self.command {
            Some(Command::ToolboxHost(arguments)) => Some(plugin(arguments)),
            Some(Command::ProgramHost(arguments)) => Some(program_host::run(arguments)),
            _ => None,
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// [`CliError::exit_code`] is the exit code of the program. Everything except the text of the error has been written.
///
/// # Cancel safety
/// Not safe: a call that was sent continues without its client.
pub async fn run(cli: &Cli, output: &mut Output<'_>) -> Result<(), CliError> {
    let mut context = Context::new(&cli.options, output);
    let context = &mut context;
    match &cli.command {
        None => serve::run(&serve::Arguments::default(), context).await,
        Some(Command::Serve(arguments)) => serve::run(arguments, context).await,
        Some(Command::Bus(arguments)) => bus::run(arguments, context).await,
        Some(Command::List(arguments)) => list::run(arguments, context).await,
        Some(Command::Get(arguments)) => get::run(arguments, context).await,
        Some(Command::Invoke(arguments)) => invoke::run(arguments, context).await,
        Some(Command::Run(arguments)) => run::run(arguments, context).await,
        Some(Command::Plan(arguments)) => plan::run(arguments, context).await,
        Some(Command::Export(arguments)) => export::run(arguments, context).await,
        Some(Command::Reload(arguments)) => reload::run(arguments, context).await,
        Some(Command::Stop(arguments)) => stop::run(arguments, context).await,
        Some(Command::Resume(arguments)) => resume::run(arguments, context).await,
        Some(Command::Approve(arguments)) => approve::approve(arguments, context),
        Some(Command::Deny(arguments)) => approve::deny(arguments, context),
        Some(Command::Cancel(arguments)) => cancel::run(arguments, context).await,
        Some(Command::Enable(arguments)) => enable::run(arguments, true, context).await,
        Some(Command::Disable(arguments)) => enable::run(arguments, false, context).await,
        Some(Command::Status(arguments)) => status::run(arguments, context).await,
        Some(Command::Check(arguments)) => check::run(arguments, context).await,
        Some(Command::New(arguments)) => new::run(arguments, context),
        Some(Command::Doctor(arguments)) => doctor::run(arguments, context).await,
        Some(Command::InstallService(arguments)) => install_service::run(arguments, context),
        Some(Command::Config(arguments)) => config::run(arguments, context),
        Some(Command::Completions(arguments)) => completions::run(arguments, context),
        Some(Command::Man(arguments)) => man::run(arguments),
        // Handled by `host_toolbox`, before the runtime started.
        Some(Command::ToolboxHost(_) | Command::ProgramHost(_)) => Ok(()),
    }
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
