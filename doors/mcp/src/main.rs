//! The MCP door: the tools of a running ovos-tools for clients of the Model Context Protocol, at stdin and stdout or over
//! HTTP.
//!
//! It is an ordinary bus client, made of [`door::Door`]; the service has no code for it. `server` answers requests, `listing` is
//! what clients see, `call` carries out one call, `run` several calls as one, and `presence` notices that a client is gone.
//!
//! ```console
//! $ claude mcp add ovos-tools -- ovos-tools mcp
//! ```

mod admission;
mod answer;
mod arrival;
mod call;
mod call_request;
mod confirm;
mod content;
mod early_answer;
mod find_tools;
mod grant;
mod guarded;
mod hosts;
mod http;
mod issuer;
mod lines;
mod listing;
mod long_calls;
mod origin;
mod padding;
mod patience;
mod presence;
mod progress;
mod resources;
mod results;
mod run;
mod run_tool;
mod server;
mod sessions;
mod shared;
mod signed;
mod skills;
mod stdio;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use door::find::{CALL_TOOL, FIND_TOOLS};
use door::program::{self, DoorConnection, Options, ProgramError, block_on, failed};
use door::{OwnTool as _, ScheduleTool};
use rmcp::service::ServerInitializeError;

use crate::http::{Http, HttpError};
use crate::shared::Door;

/// The name of the door on the bus.
const SOURCE: &str = "ovos-tools-mcp";

/// The tools of a running ovos-tools, for clients of the Model Context Protocol
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools-mcp",
    bin_name = "ovos-tools mcp",
    version,
    after_help = "Without --http it serves one client at stdin and stdout. It needs a bus and a service: `ovos-tools serve \
                  --embedded-bus auto` starts both. docs/mcp.md tells how to add it to Claude, VS Code or Cursor."
)]
struct Arguments {
    /// Serve clients over HTTP at this address, such as 127.0.0.1:8765; the endpoint is /mcp
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the entry of the door for the configuration of a client, or write it there
    Config(hosts::Arguments),
}

/// Why the door cannot serve.
#[derive(Debug, thiserror::Error)]
enum DoorError {
    #[error("{0}")]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Http(#[from] HttpError),
    #[error("{0}")]
    Host(#[from] hosts::HostError),
    #[error("the client at stdin does not speak MCP: {0}")]
    Stdio(Box<ServerInitializeError>),
}

impl DoorError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Http(_) | Self::Host(_) | Self::Stdio(_) => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = match program::arguments() {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    arguments.options.log(
        "warn,ovos_tools_mcp=info",
        "info,ovos_tools_mcp=debug",
        "rmcp=error",
    );
    let ran = match &arguments.command {
        Some(Command::Config(wanted)) => configure(&arguments.options, wanted),
        None => block_on(run(&arguments)),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, error.exit_code()),
    }
}

/// Prints or writes the entry for a client, with the options that the door should have there.
fn configure(options: &Options, wanted: &hosts::Arguments) -> Result<(), DoorError> {
    let program = std::env::current_exe().map_err(ProgramError::machine("find this program"))?;
    let mut before = Vec::new();
    if let Some(bus) = &options.bus {
        before.extend(["--bus".to_owned(), bus.clone()]);
    }
    if let Some(config) = &options.config {
        let config = std::path::absolute(config).map_err(ProgramError::machine("find the configuration"))?;
        before.extend(["--config".to_owned(), config.to_string_lossy().into_owned()]);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    // TOKEN stands for one that the door has not made yet.
    let config = options.load()?;
    let door = &config.doors.mcp;
    let token = std::fs::read_to_string(&door.token_file)
        .ok()
        .filter(|_| door.http_token);
    let token = token.as_deref().map_or("TOKEN", str::trim);
    let token = door.http_token.then_some(token);
    let text = hosts::run(wanted, &program, &before, token, home.as_deref())?;
    let written = std::io::stdout().write_all(text.as_bytes());
    Ok(written.map_err(ProgramError::machine("write the output"))?)
}

/// Serves clients over HTTP, on one thread: its tasks run in the order in which their sockets became readable, so that requests
/// on several connections of one client keep their order.
fn over_http(address: SocketAddr, door: &Arc<Door>, shows_token: bool) -> Result<(), DoorError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ProgramError::machine("start the async runtime"))?;
    runtime.block_on(async {
        let http = Http::bind(address, door).await?;
        print_line(&http.greeting(door, shows_token));
        http.serve(door).await;
        Ok(())
    })
}

/// Writes to stderr, because stdout belongs to the protocol.
fn print_line(text: &str) {
    // The door serves even without stderr.
    _ = std::io::stderr().write_all(text.as_bytes());
}

async fn run(arguments: &Arguments) -> Result<(), DoorError> {
    let config = arguments.options.load()?;
    let Some(connection) = DoorConnection::start(&config, SOURCE).await? else {
        return Ok(());
    };
    let wanted = &config.doors.mcp;
    let later: Vec<&'static str> = ScheduleTool::ALL.iter().map(|tool| tool.name()).collect();
    let own = [
        (wanted.run_steps, &[run_tool::NAME][..]),
        (wanted.find_tools, &[FIND_TOOLS, CALL_TOOL]),
        (wanted.schedule, &later),
    ];
    let own = own
        .into_iter()
        .filter(|(is_shown, _)| *is_shown)
        .flat_map(|(_, names)| names);
    let own: Vec<&'static str> = own.copied().collect();
    let door = Door::new(connection.door("mcp", &wanted.toolset, &own), &config);
    door.link.refreshed().await;
    door.link.tasks.spawn({
        let door = Arc::clone(&door);
        async move { door.follow().await }
    });
    let served = match arguments.http {
        None => crate::stdio::serve(&door).await.map_err(DoorError::Stdio),
        Some(address) => {
            let door = Arc::clone(&door);
            let shows_token = !arguments.options.started_by_service();
            let serving = tokio::task::spawn_blocking(move || over_http(address, &door, shows_token)).await;
            serving.unwrap_or_else(|cause| {
                let cause = std::io::Error::other(cause);
                Err(ProgramError::machine("serve clients over HTTP")(cause).into())
            })
        }
    };
    connection.close().await;
    served
}
