//! The program that hosts the process of a role: the one that hosts this toolbox, or the one that a test names.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use parking_lot::Mutex;

/// Where the program differs from the one that hosts this toolbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostProgram {
    /// The program to start instead; it has the library linked in.
    pub(crate) instead: Option<PathBuf>,
    /// What is added to its environment.
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// Set by `testing::role_host` alone.
pub(crate) static HOST_PROGRAM: Mutex<HostProgram> = Mutex::new(HostProgram {
    instead: None,
    env: Vec::new(),
});

/// The command that starts this library again.
pub(super) fn command(role: &str) -> io::Result<Command> {
    let HostProgram { instead, env } = HOST_PROGRAM.lock().clone();
    let file = if instead.is_none() { Some(file()?) } else { None };
    let mut command = Command::new(instead.unwrap_or_else(|| "/proc/self/exe".into()));
    command.arg("toolbox-host").arg("--role").arg(role).args(file);
    command.envs(env);
    Ok(command)
}

/// The file that this code was loaded from.
fn file() -> io::Result<PathBuf> {
    let here = file as fn() -> io::Result<PathBuf> as usize;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let holds = |line: &&str| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        range.is_some_and(|(from, to)| (number(from)..number(to)).contains(&here))
    };
    let path = maps
        .lines()
        .find(holds)
        .and_then(|line| line.find('/').map(|at| &line[at..]));
    path.map(PathBuf::from)
        .ok_or_else(|| io::Error::other("/proc/self/maps does not name the file of this toolbox"))
}
