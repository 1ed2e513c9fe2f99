//! `ovos-tools NAME ...` for a door: starts the program `ovos-tools-NAME`, which is beside this one or on the path, as git does.
//! `ovos-tools history ...` is `ovos-tools console history ...`.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use config::Doors;
use executable::command::{in_path, is_program};

use super::error::CliError;

/// Shortcuts: `ovos-tools NAME` for `ovos-tools DOOR NAME`: the name, and the door.
const OF_DOORS: [(&str, &str); 1] = [("history", "console")];

/// Replaces this process with the door that the arguments name, if they name no subcommand. Returns only if that fails; `None` if
/// they do not name a door either.
#[must_use]
pub fn become_door(refused: &clap::Error, arguments: &[OsString]) -> Option<CliError> {
    if refused.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(name)) = refused.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let at = arguments.iter().position(|argument| argument == name.as_str())?;
    let of_door = OF_DOORS.iter().find(|(subcommand, _)| subcommand == name);
    let door = of_door.map_or(name.as_str(), |(_, door)| door);
    let program = program_of(door);
    let Some(path) = find_door(door).filter(|_| is_name) else {
        return Doors::NAMES.contains(&door).then(|| {
            CliError::Usage(format!(
                "`ovos-tools {name}` needs the separate program {program}, which is neither next to this one nor in PATH: \
                 `make install` installs both"
            ))
        });
    };
    // The options before the name are those that every subcommand has.
    let before = arguments.get(1..at).unwrap_or_default();
    let after = arguments
        .get(at + usize::from(of_door.is_none())..)
        .unwrap_or_default();
    let cause = Command::new(&path).args(before).args(after).exec();
    Some(CliError::Machine {
        what: format!("run {}", path.display()),
        cause,
    })
}

fn program_of(name: &str) -> String {
    format!("ovos-tools-{name}")
}

/// Looks for the program of a door, first beside this one.
#[must_use]
pub fn find_door(name: &str) -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own
        .as_deref()
        .and_then(|own| Some(own.parent()?.join(program_of(name))));
    let path = env::var_os("PATH").unwrap_or_default();
    beside
        .filter(|file| is_program(file))
        .or_else(|| in_path(&program_of(name), &path))
}
