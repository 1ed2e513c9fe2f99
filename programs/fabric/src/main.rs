//! `ovos-tools-fabric`: toolboxes of other machines, over Zenoh.
//!
//! `ovos-tools fabric host` on a robot runs its toolboxes without a bus; `ovos-tools fabric mount` beside a service is one of them as a
//! program of that service (`docs/protocol.md`). Read [`host`], then [`mount`]; `messages` are what the two say to each other. The
//! page for people is docs/several-machines.md.
//!
//! ```json
//! {"service": {"programs": {"arm": {"command": "ovos-tools-fabric", "args": ["mount", "robot1", "arm", "--at", "10.0.0.2"]}}}}
//! ```
#![forbid(unsafe_code)]

mod authority;
mod clock;
mod folder;
mod host;
mod inspect;
mod messages;
mod mount;
mod peers;
mod private_file;
mod resume;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use program::print_and_exit;

use folder::Folder;
use inspect::HostAddress;
use peers::Role;

/// The exit code where something has to be put right by a person.
const EXIT_WRONG: u8 = 1;

/// Toolboxes of other machines as toolboxes of this one.
#[derive(Debug, Parser)]
#[command(
    name = "ovos-tools fabric",
    version,
    after_help = "The page docs/several-machines.md shows two machines step by step."
)]
struct CommandLine {
    /// The fabric folder [default: ovos-tools/fabric in the user's configuration folder]
    #[arg(long, global = true, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The configuration file, on top of all others
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a fabric: its authority, and the certificate of this machine
    Init {
        /// The name of this machine
        name: String,
        /// How many days the certificate is valid; 0.5 is half a day
        #[arg(long, default_value = "730", value_parser = authority::days)]
        days: Duration,
    },
    /// Make the file with which another machine joins (on the machine where `init` ran)
    Invite {
        /// The name of that machine
        name: String,
        /// What it may do on this one
        #[arg(long, value_enum, default_value = "commander")]
        role: Role,
        /// How many days its certificate is valid; 0.5 is half a day
        #[arg(long, default_value = "730", value_parser = authority::days)]
        days: Duration,
        /// Where to write the file [default: NAME.fabric]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Join a fabric with the file of an invitation
    Join {
        /// The file
        file: PathBuf,
    },
    /// Let a machine of the fabric reach this one
    Allow {
        /// Its name
        name: String,
        /// What it may do here
        #[arg(long, value_enum, default_value = "commander")]
        role: Role,
    },
    /// Revoke a machine: its certificate is not accepted any more
    Revoke {
        /// Its name
        name: String,
    },
    /// Run the toolboxes of this machine for others, without a bus
    Host(host::Arguments),
    /// Serve a toolbox of another machine here; started by the service
    Mount(mount::Arguments),
    /// Lift the stop of a whole host, for everybody who uses it
    ResumeAll {
        /// The host's name
        host: String,
        /// Its address
        address: String,
        /// The stop, as `doctor` shows it
        stop_id: String,
    },
    /// Show this machine and the hosts of the configuration
    Status,
    /// Look for what is wrong between this machine and a host
    Doctor {
        /// The host's name
        #[arg(requires = "address")]
        host: Option<String>,
        /// Its address
        address: Option<String>,
    },
}

fn main() -> ExitCode {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.last().is_some_and(|last| last == "--safe-stop") {
        // The host brings its machine to rest by itself.
        return ExitCode::SUCCESS;
    }
    if let Some(own) = arguments.first_mut() {
        *own = "ovos-tools fabric".into();
    }
    let CommandLine {
        folder,
        config,
        command,
    } = match CommandLine::try_parse_from(arguments) {
        Ok(line) => line,
        Err(error) => {
            let status = u8::try_from(error.exit_code()).unwrap_or(2);
            return print_and_exit(&error.to_string(), status);
        }
    };
    let folder = Folder::new(folder);
    let uses_zenoh = matches!(
        command,
        Command::Host(_)
            | Command::Mount(_)
            | Command::ResumeAll { .. }
            | Command::Status
            | Command::Doctor { .. }
    );
    if uses_zenoh && let Err(error) = session::with_one_thread() {
        return print_and_exit(&format!("start this program again: {error}\n"), EXIT_WRONG);
    }
    let done = match command {
        Command::Init { name, days } => authority::init(&folder, &name, days),
        Command::Invite {
            name,
            role,
            days,
            out,
        } => {
            let to = out.unwrap_or_else(|| PathBuf::from(format!("{name}.fabric")));
            authority::invite(&folder, &name, role, days, &to)
        }
        Command::Join { file } => authority::join(&folder, &file),
        Command::Allow { name, role } => authority::allow(&folder, &name, role),
        Command::Revoke { name } => authority::revoke(&folder, &name),
        Command::Host(arguments) => host::run(&folder, config, &arguments).map(|()| String::new()),
        Command::Mount(arguments) => return mount::run(folder, arguments),
        Command::ResumeAll {
            host,
            address,
            stop_id,
        } => resume::resume_all(&folder, host, &address, stop_id),
        Command::Status => inspect::configured(config)
            .map(|hosts| (hosts, folder))
            .and_then(show),
        Command::Doctor { host, address } => match host.zip(address) {
            Some((host, address)) => show((vec![HostAddress { host, address }], folder)),
            None => inspect::configured(config)
                .map(|hosts| (hosts, folder))
                .and_then(show),
        },
    };
    match done {
        Ok(text) => print_and_exit(&text, 0),
        Err(why) => print_and_exit(&format!("{}\n", why.trim_end()), EXIT_WRONG),
    }
}

/// What was found, as an error if something is wrong.
fn show((hosts, folder): (Vec<HostAddress>, Folder)) -> Result<String, String> {
    let found = inspect::look(&folder, &hosts);
    if found.is_well {
        Ok(found.text)
    } else {
        Err(found.text)
    }
}
