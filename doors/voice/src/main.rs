//! The voice door: the tools of a running ovos-tools for live speech services.
//!
//! A person speaks with such a service through a phone, a web page or a telephone line. This door joins their conversation,
//! without audio, and carries out the calls that the voice makes. `dialect` is the interface to a service's protocol, `chat` is
//! one conversation, `ledger` and `silence` make its decisions, and `bridge` has all conversations.
//!
//! ```console
//! $ ovos-tools voice hume --chat CHAT_ID
//! ```

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

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use client::topic;
use config::speech_service;
use door::program::{self, DoorConnection, Options, ProgramError, block_on, failed};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::bridge::{Bridge, JoinError, Service};
use crate::dialect::Target;
use crate::line::ChatError;

/// The requests that the door answers.
const JOIN: &[&str] = &[topic::VOICE_JOIN.name()];

/// The name of the door on the bus.
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
    #[command(flatten)]
    options: Options,
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

/// Why the door cannot serve.
#[derive(Debug, thiserror::Error)]
enum DoorError {
    #[error("{0}")]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Join(#[from] JoinError),
    #[error("{0}")]
    Chat(#[from] ChatError),
}

impl DoorError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Join(_) | Self::Chat(_) => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = match program::arguments() {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    // Frames contain what people say and headers contain keys, so the logs of the websocket crates are off at every level.
    arguments.options.log(
        "warn,ovos_tools_voice=info",
        "info,ovos_tools_voice=debug,door=debug",
        "tungstenite=off,tokio_tungstenite=off,rustls=warn",
    );
    match block_on(run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, error.exit_code()),
    }
}

async fn run(arguments: Arguments) -> Result<(), DoorError> {
    let config = arguments.options.load()?;
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
    let trust = socket::trust().map_err(std::io::Error::other);
    let trust = trust.map_err(ProgramError::machine("prepare TLS"))?;
    let Some(connection) = DoorConnection::connect(&config, SOURCE).await? else {
        return Ok(());
    };
    let door = connection.door("voice", &keys.toolset, &[]);
    door.refreshed().await;
    door.tasks.spawn({
        let door = Arc::clone(&door);
        async move { door.follow().await }
    });
    let bridge = Bridge::new(Arc::clone(&door), keys, trust, config.service.state_dir.clone());
    let joins = connection.client.serve(JOIN);
    door.tasks.spawn(Arc::clone(&bridge).answer_joins(joins));
    let served = match wanted {
        None => {
            tracing::info!("waiting for ovos.tools.voice.join");
            connection.shutdown.cancelled().await;
            Ok(())
        }
        Some((service, target)) => talk(&bridge, service, target, &connection.shutdown).await,
    };
    connection.shutdown.cancel();
    door.tasks.close();
    if timeout(END_WAIT, door.tasks.wait()).await.is_err() {
        tracing::warn!("not every conversation ended within {END_WAIT:?}");
    }
    connection.close().await;
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
        opened = bridge.open(service, target, bridge.door.client.clone()) => opened?,
        () = shutdown.cancelled() => return Ok(()),
    };
    Ok(serving.await?)
}
