//! The MCP door: the tools of a running ovos-tools for clients of the Model Context Protocol, at stdin and stdout or over
//! HTTP.
//!
//! It is a bus client like any other, made of [`door::Door`]; the service does not know it. `server` answers requests,
//! `listing` is what clients see, `call` carries one call out, `run` several as one, `presence` notices that a client has vanished.

mod answer;
mod call;
mod confirm;
mod content;
mod hosts;
mod http;
mod listing;
mod presence;
mod progress;
mod resources;
mod run;
mod run_tool;
mod schema;
mod server;
mod shared;
mod stdio;
mod token;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use client::ClientError;
use config::{Config, ConfigErrors, Overrides, ProcessEnvironment};
use door::program::{connect, on_signals};
use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::http::{Http, HttpError};
use crate::shared::Door;

/// How the door names itself on the bus.
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
    /// Address of the messagebus, instead of mycroft.conf's `websocket` [such as ws://127.0.0.1:8181/core]
    #[arg(long, value_name = "URL")]
    bus: Option<String>,
    /// Configuration on top of the mycroft.conf stack, in the place of the user's file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Log more to stderr: -v debug, -vv trace
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the entry of the door for the configuration of a client, or write it there
    Config(hosts::Arguments),
}

/// Why the door does not serve.
#[derive(Debug, thiserror::Error)]
enum DoorError {
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    #[error("{0}")]
    Bus(#[from] ClientError),
    #[error("{0}")]
    Http(#[from] HttpError),
    #[error("{0}")]
    Host(#[from] hosts::HostError),
    #[error("the client at stdin does not speak the protocol: {0}")]
    Stdio(Box<ServerInitializeError>),
    #[error("{what}: {cause}")]
    Machine {
        what: &'static str,
        cause: std::io::Error,
    },
}

impl DoorError {
    /// As those of `ovos-tools`.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Bus(_) => 3,
            Self::Http(_) | Self::Host(_) | Self::Stdio(_) | Self::Machine { .. } => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log(arguments.verbose);
    let ran = match &arguments.command {
        Some(Command::Config(wanted)) => configure(&arguments, wanted),
        None => serve(&arguments),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}\n"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn serve(arguments: &Arguments) -> Result<(), DoorError> {
    let failed = |what| move |cause| DoorError::Machine { what, cause };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(failed("start the async runtime"))?;
    let ran = runtime.block_on(run(arguments));
    // A read of stdin may still hold a thread.
    runtime.shutdown_background();
    ran
}

/// The entry for a client, with the options that the door is to have there.
fn configure(arguments: &Arguments, wanted: &hosts::Arguments) -> Result<(), DoorError> {
    let failed = |what| move |cause| DoorError::Machine { what, cause };
    let program = std::env::current_exe().map_err(failed("find this program"))?;
    let mut before = Vec::new();
    if let Some(bus) = &arguments.bus {
        before.extend(["--bus".to_owned(), bus.clone()]);
    }
    if let Some(config) = &arguments.config {
        let config = std::path::absolute(config).map_err(failed("find the configuration"))?;
        before.extend(["--config".to_owned(), config.to_string_lossy().into_owned()]);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let text = hosts::run(wanted, &program, &before, home.as_deref())?;
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(failed("write the output"))
}

/// To stderr: stdout is the protocol's.
fn say(text: &str) {
    // Without stderr there is nothing to tell it to.
    _ = std::io::stderr().write_all(text.as_bytes());
}

fn log(verbose: u8) {
    let filter = match verbose {
        0 => "warn,ovos_tools_mcp=info,rmcp=error",
        1 => "info,ovos_tools_mcp=debug",
        _ => "trace",
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}

async fn run(arguments: &Arguments) -> Result<(), DoorError> {
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
    let signals = on_signals(shutdown.clone()).map_err(|cause| DoorError::Machine {
        what: "listen for signals",
        cause,
    })?;
    let client = tokio::select! {
        client = connect(&config, SOURCE) => client?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let wanted = &config.doors.mcp;
    let own: &[&str] = if wanted.run_steps { &[run_tool::NAME] } else { &[] };
    let link = door::Door::new(client.clone(), wanted.toolset.clone(), own, shutdown.clone());
    let door = Door::new(link, &config);
    // Where the bus is away again: each beat says as much.
    _ = client.hello("mcp");
    door.link.refreshed().await;
    door.link.tasks.spawn({
        let door = Arc::clone(&door);
        async move { door.follow().await }
    });
    let served = match arguments.http {
        None => crate::stdio::serve(&door).await.map_err(DoorError::Stdio),
        Some(address) => match Http::bind(address, &door).await {
            Ok(http) => {
                say(&http.greeting(&door));
                http.serve(&door).await;
                Ok(())
            }
            Err(error) => Err(error.into()),
        },
    };
    shutdown.cancel();
    signals.abort();
    client.close().await;
    served
}
