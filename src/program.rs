//! The program: its arguments, and the subcommands that run the service or look at the files of this machine.
//!
//! Those that ask a service are in the crate `cli`, which knows the bus and no more. Read [`Cli`], then [`run`].

mod bus;
mod check;
mod completions;
mod config;
mod doctor;
mod enable;
mod install_service;
mod man;
mod new;
mod program_host;
mod serve;
mod toolbox_host;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use cli::{CliError, Context, Options, Output};

const EXAMPLES: &str = "\
Examples:
  ovos-tools serve --embedded-bus auto     run the service, with an embedded bus if none is running
  ovos-tools list                          which tools there are
  ovos-tools invoke add a=1 b=2            call one
  ovos-tools run morning.json              several calls, from a file
  ovos-tools plan add a=1 b=2              what a call would do, without doing it
  ovos-tools stop                          emergency stop of everything

Doors, each a program of its own with a --help of its own:
  ovos-tools mcp                           the tools for Claude, VS Code and other MCP clients
  ovos-tools voice                         the tools for a conversation with a speech service
  ovos-tools agent                         a language model that pursues a goal with the tools
  ovos-tools console                       a page in a browser: what runs, the stop, approvals
  ovos-tools schedule                      calls at a time, every so often, or on an event
  ovos-tools fabric                        toolboxes of other machines
  ovos-tools history                       the calls that were made, as the console keeps them

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
pub(crate) struct Cli {
    /// What every subcommand understands.
    #[command(flatten)]
    pub(crate) options: Options,
    /// What to do; `serve` when it is not said.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service (this is the default)
    Serve(serve::Arguments),
    /// Run a messagebus, for machines without ovos-messagebus
    Bus(bus::Arguments),
    /// The subcommands that ask a running service.
    #[command(flatten)]
    Ask(cli::Command),
    /// Switch toolboxes and doors on, such as the simulated robot or the console
    Enable(enable::Arguments),
    /// Switch toolboxes and doors off
    Disable(enable::Arguments),
    /// Show toolboxes, running calls and counters
    Status(cli::status::Arguments),
    /// Try out a plugin or a program and say what is wrong with it
    Check(check::Arguments),
    /// Write a toolbox to start from: a project with a tool and a test
    New(new::Arguments),
    /// Show what is missing on this machine, what needs it, and how to fix it
    Doctor(doctor::Arguments),
    /// Install or remove a systemd service of this user
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
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.command, None | Some(Command::Serve(_) | Command::Bus(_)))
    }

    /// Hosts a toolbox if the arguments ask for it, and returns the exit code.
    #[must_use]
    pub(crate) fn host_toolbox(&self) -> Option<ExitCode> {
        match &self.command {
            Some(Command::ToolboxHost(arguments)) => Some(toolbox_host::run(arguments)),
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
pub(crate) async fn run(cli: &Cli, output: &mut Output<'_>) -> Result<(), CliError> {
    let mut context = Context::new(&cli.options, output);
    let context = &mut context;
    match &cli.command {
        None => serve::run(&serve::Arguments::default(), context).await,
        Some(Command::Serve(arguments)) => serve::run(arguments, context).await,
        Some(Command::Bus(arguments)) => bus::run(arguments, context).await,
        Some(Command::Ask(command)) => cli::run(command, context).await,
        Some(Command::Enable(arguments)) => enable::run(arguments, true, context).await,
        Some(Command::Disable(arguments)) => enable::run(arguments, false, context).await,
        Some(Command::Status(arguments)) => cli::status::run(arguments, context).await,
        Some(Command::Check(arguments)) => check::run(arguments, context).await,
        Some(Command::New(arguments)) => new::run(arguments, context),
        Some(Command::Doctor(arguments)) => doctor::run(arguments, context).await,
        Some(Command::InstallService(arguments)) => install_service::run(arguments, context),
        Some(Command::Config(arguments)) => config::run(arguments, context),
        Some(Command::Completions(arguments)) => completions::run(arguments, Cli::command(), context),
        Some(Command::Man(arguments)) => man::run(arguments, Cli::command()),
        // Handled by `host_toolbox`, before the runtime started.
        Some(Command::ToolboxHost(_) | Command::ProgramHost(_)) => Ok(()),
    }
}
