//! The voice door: the tools of a running ovos-tools for live speech services.
//!
//! A person speaks with such a service through a phone, a web page or a telephone line. This door joins the conversation
//! beside them, without audio, and carries out the calls that the voice makes. `dialect` is what a service's protocol is to
//! it, `chat` one conversation, `ledger` and `silence` its decisions, `bridge` all conversations.

mod backoff;
mod bridge;
mod call;
mod chat;
mod claim;
mod dialect;
mod floor;
mod hume;
mod kind;
mod ledger;
mod line;
mod list;
mod openai;
mod outcome;
#[cfg(test)]
mod recording;
mod silence;
mod socket;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use client::{ClientError, topic};
use config::{Config, ConfigErrors, Overrides, ProcessEnvironment, speech_service};
use door::Door;
use door::program::{connect, on_signals};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::bridge::{Bridge, JoinError, Service};
use crate::dialect::Target;
use crate::line::ChatError;

/// The requests that it answers.
const JOIN: &[&str] = &[topic::VOICE_JOIN.name()];

/// How the door names itself on the bus.
const SOURCE: &str = "ovos-tools-voice";

/// How long the conversations may take to end when the door closes.
const END_WAIT: Duration = Duration::from_secs(5);

/// The tools of a running ovos-tools, for live speech services
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools-voice",
    bin_name = "ovos-tools voice",
    version,
    after_help = "It joins conversations without audio, those named here and those that `ovos.tools.voice.join` names on the \
                  bus. It needs a bus and a service: `ovos-tools serve --embedded-bus auto` starts both. docs/voice.md has \
                  an example that needs no account."
)]
struct Arguments {
    /// Address of the messagebus, instead of mycroft.conf's `websocket` [such as ws://127.0.0.1:8181/core]
    #[arg(long, value_name = "URL", global = true)]
    bus: Option<String>,
    /// Configuration on top of the mycroft.conf stack, in the place of the user's file
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Log more to stderr: -v debug, -vv trace
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a conversation with Hume's Empathic Voice Interface, and end with it
    Hume {
        /// Join the chat with this chat_id; without it the door opens a chat of its own, which others can join
        #[arg(long, value_name = "ID")]
        chat: Option<String>,
        /// Where Hume is, instead of `doors.voice.hume.url` [such as ws://127.0.0.1:8790 for a test]
        #[arg(long, value_name = "URL", value_parser = speech_service)]
        url: Option<Url>,
    },
    /// Serve a call of OpenAI's Realtime API, and end with it
    Openai {
        /// Join the WebRTC or SIP call with this call_id
        #[arg(long, value_name = "ID")]
        call: String,
        /// Where OpenAI is, instead of `doors.voice.openai.url` [such as ws://127.0.0.1:8790 for a test]
        #[arg(long, value_name = "URL", value_parser = speech_service)]
        url: Option<Url>,
    },
}

/// Why the door does not serve.
#[derive(Debug, thiserror::Error)]
enum DoorError {
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    #[error("{0}")]
    Bus(#[from] ClientError),
    #[error("{0}")]
    Join(#[from] JoinError),
    #[error("{0}")]
    Chat(#[from] ChatError),
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
            Self::Join(_) | Self::Chat(_) | Self::Machine { .. } => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log(arguments.verbose);
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without stderr there is nothing to tell it to.
            _ = std::io::stderr().write_all(format!("error: {error}\n").as_bytes());
            ExitCode::from(error.exit_code())
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), DoorError> {
    let failed = |what| move |cause| DoorError::Machine { what, cause };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(failed("start the async runtime"))?;
    let ran = runtime.block_on(run(arguments));
    // A name may still be looked up on a thread of its own.
    runtime.shutdown_background();
    ran
}

/// Frames carry what people say and headers carry keys, so what the websocket's own crates log stays out at every level.
fn log(verbose: u8) {
    let filter = match verbose {
        0 => "warn,ovos_tools_voice=info",
        1 => "info,ovos_tools_voice=debug,door=debug",
        _ => "trace",
    };
    let filter = format!("{filter},tungstenite=off,tokio_tungstenite=off,rustls=warn");
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}

async fn run(arguments: Arguments) -> Result<(), DoorError> {
    let overrides = Overrides {
        config: arguments.config,
        bus: arguments.bus,
        ..Overrides::default()
    };
    let config = Config::load(&ProcessEnvironment, &overrides, None)?;
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    let mut keys = config.doors.voice.clone();
    let wanted = arguments.command.map(|command| match command {
        Command::Hume { chat, url } => {
            keys.hume.url = url.unwrap_or_else(|| keys.hume.url.clone());
            let target = chat.map_or(Target::Own { resumes: None }, Target::Joined);
            (Service::Hume, target)
        }
        Command::Openai { call, url } => {
            keys.openai.url = url.unwrap_or_else(|| keys.openai.url.clone());
            (Service::OpenAi, Target::Joined(call))
        }
    });
    let shutdown = CancellationToken::new();
    let failed = |what| move |cause| DoorError::Machine { what, cause };
    let signals = on_signals(shutdown.clone()).map_err(failed("listen for signals"))?;
    let trust = socket::trust().map_err(std::io::Error::other);
    let trust = trust.map_err(failed("prepare TLS"))?;
    let client = tokio::select! {
        client = connect(&config, SOURCE) => client?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let door = Door::new(client.clone(), keys.toolset.clone(), &[], shutdown.clone());
    // Where the bus is away again: each beat says as much.
    _ = client.hello("voice");
    door.refreshed().await;
    door.tasks.spawn({
        let door = Arc::clone(&door);
        async move { door.follow().await }
    });
    let bridge = Bridge::new(Arc::clone(&door), keys, trust, config.service.state_dir.clone());
    let joins = client.serve(JOIN);
    door.tasks.spawn(Arc::clone(&bridge).answer_joins(joins));
    let served = match wanted {
        None => {
            tracing::info!("waiting for ovos.tools.voice.join");
            shutdown.cancelled().await;
            Ok(())
        }
        Some((service, target)) => talk(&bridge, service, target, &shutdown).await,
    };
    shutdown.cancel();
    door.tasks.close();
    if timeout(END_WAIT, door.tasks.wait()).await.is_err() {
        tracing::warn!("not every conversation ended within {END_WAIT:?}");
    }
    signals.abort();
    client.close().await;
    served
}

/// Serves one conversation to its end.
async fn talk(
    bridge: &Bridge,
    service: Service,
    target: Target,
    shutdown: &CancellationToken,
) -> Result<(), DoorError> {
    let serving = tokio::select! {
        opened = bridge.open(service, target) => opened?,
        () = shutdown.cancelled() => return Ok(()),
    };
    Ok(serving.await?)
}
