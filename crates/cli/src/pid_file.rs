//! The process id of the service on this machine (`service.pid` in its state directory), for an emergency stop
//! without a bus.
//!
//! The service holds a lock on the file while it lives, and the kernel releases the lock at its death, whatever the
//! cause. So a file that is not locked is a leftover, and the signal goes to the process that holds the lock, not to
//! another one with a reused number. Read [`PidFile`] (the service's side) and [`RunningService`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

const NAME: &str = "service.pid";

/// How often, and for how long each time, to wait for a program that holds the lock only while it looks for a service.
const LOOKERS: usize = 3;
const LOOK: Duration = Duration::from_millis(10);

/// Why a service cannot be announced or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PidFileError {
    /// Another service already uses the state directory. A second one would write the same latches.
    #[error(
        "another ovos-tools service{} is using {}: stop it, or set a different service.state_dir for this one",
        pid.map_or_else(String::new, |pid| format!(" (process {pid})")),
        path.display()
    )]
    Taken {
        /// The file that the other service holds.
        path: PathBuf,
        /// The process of the other service, if the file has it.
        pid: Option<i32>,
    },
    /// The file or its directory cannot be used.
    #[error("{}: {cause}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

/// The announcement of this process as the service; dropping it withdraws it.
#[derive(Debug)]
pub struct PidFile {
    file: File,
    path: PathBuf,
}

impl PidFile {
    /// Announces this process, which serves on `bus`. SIGUSR1 must be handled before: it kills a process that does
    /// not handle it.
    ///
    /// # Errors
    /// [`PidFileError`].
    pub fn claim(state_dir: &Path, bus: &str) -> Result<Self, PidFileError> {
        let path = state_dir.join(NAME);
        let unusable = |cause: io::Error| PidFileError::Unusable {
            path: path.clone(),
            cause,
        };
        fs::create_dir_all(state_dir).map_err(unusable)?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options.open(&path).map_err(unusable)?;
        let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive);
        // A program that looks for a service holds the lock for a moment if no service runs.
        let tries = (0..LOOKERS).map(|_| {
            thread::sleep(LOOK);
            lock()
        });
        let locked = std::iter::once(lock())
            .chain(tries)
            .find(|tried| *tried != Err(Errno::WOULDBLOCK));
        match locked.unwrap_or(Err(Errno::WOULDBLOCK)) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let pid = read(&mut file).ok().flatten().map(|(pid, _)| pid);
                return Err(PidFileError::Taken { path, pid });
            }
            Err(errno) => return Err(unusable(errno.into())),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}\n{bus}\n", std::process::id()));
        written.map_err(unusable)?;
        Ok(Self { file, path })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // The file is not removed, because the removal could hit the file of a successor. A file without content names no service.
        let _ = self.file.set_len(0);
    }
}

/// The service of a state directory; it was alive when it was found.
#[derive(Debug)]
pub struct RunningService {
    /// Its process.
    pub pid: i32,
    /// The address of the bus it serves on.
    pub bus: String,
    process: rustix::fd::OwnedFd,
}

impl RunningService {
    /// Finds the running service; `None` if there is none.
    ///
    /// # Errors
    /// The file exists and cannot be used.
    pub fn find(state_dir: &Path) -> Result<Option<Self>, PidFileError> {
        let path = state_dir.join(NAME);
        find(&path).map_err(|cause| PidFileError::Unusable { path, cause })
    }

    /// Sends SIGUSR1: an emergency stop of everything.
    ///
    /// # Errors
    /// The process is gone, or belongs to another user.
    pub fn stop(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.process, Signal::USR1)?)
    }
}

fn find(path: &Path) -> io::Result<Option<RunningService>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some((number, bus)) = read(&mut file)? else {
        return Ok(None);
    };
    let Some(pid) = Pid::from_raw(number) else {
        return Ok(None);
    };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    // Checked after reading: the number was written under the lock, so while the lock is held, the process is its
    // holder.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => Ok(Some(RunningService {
            pid: number,
            bus,
            process,
        })),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the process and the bus address, if the file has them.
fn read(file: &mut File) -> io::Result<Option<(i32, String)>> {
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    let mut lines = text.lines();
    let pid = lines
        .next()
        .and_then(|line| line.parse().ok())
        .filter(|pid| *pid > 0);
    Ok(pid.map(|pid| (pid, lines.next().unwrap_or_default().to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_found_while_it_lives_and_only_then() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/state");
        assert!(
            RunningService::find(&state).unwrap().is_none(),
            "no service is announced"
        );

        let claimed = PidFile::claim(&state, "ws://127.0.0.1:1/core").unwrap();
        let found = RunningService::find(&state).unwrap().expect("it lives");
        assert_eq!(found.pid as u32, std::process::id());
        assert_eq!(found.bus, "ws://127.0.0.1:1/core");
        let second = PidFile::claim(&state, "ws://x/").unwrap_err().to_string();
        let expected = format!(
            "another ovos-tools service (process {}) is using",
            std::process::id()
        );
        assert!(second.starts_with(&expected), "{second}");

        drop(claimed);
        assert!(RunningService::find(&state).unwrap().is_none(), "it is gone");
        PidFile::claim(&state, "ws://x/").expect("the directory is free again");
    }

    #[test]
    fn leftovers_of_a_crash_name_no_service() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for text in [
            &format!("{own}\nws://x/\n"),
            "",
            "-1\n",
            "0\n",
            "nonsense",
            "999999999\n",
        ] {
            fs::write(dir.path().join(NAME), text).unwrap();
            assert!(RunningService::find(dir.path()).unwrap().is_none(), "{text:?}");
        }
    }
}
