//! The console: the history of what a running ovos-tools did, and a page on which people see and stop what it does.
//!
//! It is a door as the others are: an ordinary client of the bus, and of the control socket, which streams the facts. The service has
//! no code for it, and is none the worse without it. [`history`] keeps the facts, and [`mod@look`] prints them; [`web`] serves the page,
//! [`gate`] and [`people`] decide who may use it.
//!
//! ```console
//! $ ovos-tools console
//! $ ovos-tools history --failed --since 2h
//! ```

mod api;
mod console;
mod files;
mod gate;
mod history;
mod look;
mod metrics;
mod people;
mod reach;
mod tls;
mod web;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use config::{Config, ConsoleDoor, Toolset};
use door::program::{self, DoorConnection, Options, ProgramError, block_on, failed};
use ovos_toolbox_wire::Audience;
use parking_lot::Mutex;
use qrcode::types::QrError;
use tokio::sync::broadcast;

use crate::history::intake::{Intake, follow};
use crate::history::store::Bounds;
use crate::look::LookError;
use crate::people::{People, Role};
use crate::web::{Web, WebError};

/// The name of the door on the bus.
const SOURCE: &str = "ovos-tools-console";

/// How many facts a page may be behind before it is told that it lost some.
const BEHIND: usize = 1024;

/// A page on which people see and stop what a running ovos-tools does, and the history of it
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools-console",
    bin_name = "ovos-tools console",
    version,
    after_help = "It needs a bus and a service: `ovos-tools serve --embedded-bus auto` starts both. docs/console.md tells more."
)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the calls that were made, or show one
    History(look::Arguments),
    /// Print the address of the page, with the token to sign in
    Address {
        /// Print the viewer's token instead, which may only look, call tools that read, and stop
        #[arg(long)]
        viewer: bool,
        /// Also draw a QR code for a phone
        #[arg(long)]
        qr: bool,
    },
}

/// Why the console cannot serve.
#[derive(Debug, thiserror::Error)]
enum ConsoleError {
    #[error("{0}")]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Look(#[from] LookError),
    #[error("{0}")]
    Web(#[from] WebError),
    #[error("{}", reach::NO_WAY)]
    NoWay,
    #[error("the address is too long for a QR code: {0}; shorten the names in service.doors.console.hosts")]
    Code(#[from] QrError),
}

impl ConsoleError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Program(error) => error.exit_code(),
            Self::Look(LookError::Unknown(_) | LookError::Ambiguous { .. }) => 1,
            Self::Look(_) | Self::Web(_) | Self::NoWay | Self::Code(_) => 5,
        }
    }
}

fn main() -> ExitCode {
    let arguments: Arguments = match program::arguments() {
        Ok(arguments) => arguments,
        Err(ended) => return ended,
    };
    let verbose = "info,ovos_tools_console=debug";
    arguments.options.log("warn,ovos_tools_console=info", verbose, "");
    let ran = match &arguments.command {
        Some(Command::History(wanted)) => look(&arguments.options, wanted),
        Some(Command::Address { viewer, qr }) => address(&arguments.options, *viewer, *qr),
        None => block_on(serve(&arguments.options)),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, error.exit_code()),
    }
}

fn look(options: &Options, wanted: &look::Arguments) -> Result<(), ConsoleError> {
    let config = options.load()?;
    let record = config.service.state_dir.join("facts.jsonl");
    Ok(look::run(wanted, &config.doors.console.history_file, &record)?)
}

fn address(options: &Options, viewer: bool, qr: bool) -> Result<(), ConsoleError> {
    let config = options.load()?;
    let door = &config.doors.console;
    let people = People::of(door).map_err(WebError::from)?;
    let token = people.token(if viewer { Role::Viewer } else { Role::Operator });
    let mut out = std::io::stdout();
    let mut text = format!("{}#token={token}\n", reach::url(door, door.address));
    if qr {
        let phone = reach::phone_url(door, door.address).ok_or(ConsoleError::NoWay)?;
        text = format!(
            "{phone}#token={token}\n{}",
            reach::code(&format!("{phone}#token={token}"), out.is_terminal())?
        );
    }
    Ok(out
        .write_all(text.as_bytes())
        .map_err(ProgramError::machine("write the output"))?)
}

/// Says where the page is. The token is for a person at a terminal; what goes anywhere else may be kept as a log.
fn announce(web: &Web) {
    let mut err = std::io::stderr();
    if !err.is_terminal() {
        tracing::info!(
            "the page is at {}: `ovos-tools console address` prints the token",
            web.url()
        );
        return;
    }
    let mut text = format!("The page is at {}\n", web.url_with_token());
    if let Some((phone, fingerprint)) = web.for_phones() {
        // Without the code the address remains.
        text += &reach::code(&phone, true).unwrap_or_default();
        text += &format!(
            "A phone reads this code. A browser asks once whether to trust the certificate, whose SHA-256 is\n{fingerprint}\n"
        );
    }
    // The console serves even without stderr.
    _ = err.write_all(text.as_bytes());
}

async fn serve(options: &Options) -> Result<(), ConsoleError> {
    let config = options.load()?;
    let web = Web::bind(&config.doors.console).await?;
    announce(&web);
    let intake = Arc::new(intake(&config));
    let following = tokio::spawn(follow(Arc::clone(&intake)));
    if let Some(connection) = DoorConnection::start(&config, SOURCE).await? {
        let everything = Toolset {
            audience: Audience::ALL.to_vec(),
            ..Toolset::default()
        };
        let door = connection.door("console", &everything, &[]);
        door.tasks.spawn({
            let door = Arc::clone(&door);
            async move { door.follow().await }
        });
        web.serve(door, intake).await;
        connection.close().await;
    }
    following.abort();
    Ok(())
}

fn intake(config: &Config) -> Intake {
    let door: &ConsoleDoor = &config.doors.console;
    Intake {
        socket: config.control_socket(),
        file: door.history_file.clone(),
        bounds: Bounds {
            keep_us: i64::from(door.keep_days) * 86_400_000_000,
            keep_bytes: i64::from(door.keep_mb) << 20,
        },
        live: broadcast::channel(BEHIND).0,
        trouble: Mutex::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use config::ConsoleDoor;

    /// A section whose files are in a folder.
    pub(crate) fn door_in(folder: &Path) -> ConsoleDoor {
        ConsoleDoor {
            start: false,
            address: ([127, 0, 0, 1], 8770).into(),
            hosts: Vec::new(),
            certificate_file: folder.join("console-certificate.pem"),
            key_file: folder.join("console-key.pem"),
            token_file: folder.join("console-token"),
            viewer_token_file: folder.join("console-viewer-token"),
            history_file: folder.join("history.sqlite"),
            keep_days: 90,
            keep_mb: 256,
        }
    }
}
