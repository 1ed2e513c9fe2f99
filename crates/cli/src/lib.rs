//! The command line: a file for each subcommand, and what they share.
//!
//! A subcommand that asks a service is an ordinary bus client, made of [`client::Client`]; it knows the payloads, not
//! the service. Rendering is pure (from data and [`Paint`] to text), and everything is written through one
//! [`Output`]. Read [`Command`] first, then [`run`].
//!
//! ```
//! assert_eq!(ovos_tools_cli::count(2, "tool", "tools"), "2 tools");
//! // What a toolbox says cannot move the cursor of the terminal.
//! assert_eq!(ovos_tools_cli::plain("a\u{1b}[2J"), "a\\u{1b}[2J");
//! ```

#![forbid(unsafe_code)]

mod approve;
mod arguments;
mod call;
mod cancel;
mod confirm;
mod context;
mod door;
mod error;
mod export;
mod get;
mod invoke;
mod list;
mod options;
mod output;
mod paint;
mod pid_file;
mod plan;
mod progress;
mod reload;
mod resume;
mod run;
mod schema;
mod shutdown;
pub mod status;
mod stop;
mod tool_table;

use clap::Subcommand;

pub use context::{Context, address};
pub use door::{become_door, find_door};
pub use error::{CliError, EXIT_MACHINE, EXIT_NO_ANSWER, EXIT_NO_BUS, EXIT_OK, EXIT_REFUSED, EXIT_USAGE};
pub use options::Options;
pub use output::Output;
pub use paint::{Cell, Paint, Tone, count, plain};
pub use pid_file::{PidFile, PidFileError, RunningService};
pub use shutdown::{no_signals, shut_down_on_signal};
pub use tool_table::{ToolRow, tool_table};

/// The subcommands that ask a service, but for [`status`].
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the tools, by toolbox
    List(list::Arguments),
    /// Show one tool: what it does, its arguments and its result
    Get(get::Arguments),
    /// Call a tool
    Invoke(invoke::Arguments),
    /// Run several calls as one; later calls can use the results of earlier ones
    Run(run::Arguments),
    /// Show what a call would do, wave by wave, without doing it
    Plan(plan::Arguments),
    /// Print the tools in the format of a language model
    Export(export::Arguments),
    /// Load new and changed plugins, unload removed ones
    Reload(reload::Arguments),
    /// Emergency stop, of everything or of some toolboxes
    Stop(stop::Arguments),
    /// Lift the emergency stop of a toolbox
    Resume(resume::Arguments),
    /// Approve a call that is waiting for approval, or list the waiting calls
    Approve(approve::Approve),
    /// Deny a call that is waiting for approval
    Deny(approve::Deny),
    /// Cancel a running or queued call
    Cancel(cancel::Arguments),
}

/// Runs a subcommand.
///
/// # Errors
/// [`CliError::exit_code`] is the exit code of the program. Everything except the text of the error has been written.
///
/// # Cancel safety
/// Not safe: a call that was sent continues without its client.
pub async fn run(command: &Command, context: &mut Context<'_, '_>) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list::run(arguments, context).await,
        Command::Get(arguments) => get::run(arguments, context).await,
        Command::Invoke(arguments) => invoke::run(arguments, context).await,
        Command::Run(arguments) => run::run(arguments, context).await,
        Command::Plan(arguments) => plan::run(arguments, context).await,
        Command::Export(arguments) => export::run(arguments, context).await,
        Command::Reload(arguments) => reload::run(arguments, context).await,
        Command::Stop(arguments) => stop::run(arguments, context).await,
        Command::Resume(arguments) => resume::run(arguments, context).await,
        Command::Approve(arguments) => approve::approve(arguments, context).await,
        Command::Deny(arguments) => approve::deny(arguments, context).await,
        Command::Cancel(arguments) => cancel::run(arguments, context).await,
    }
}
