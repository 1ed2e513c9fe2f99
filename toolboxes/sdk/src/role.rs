//! Processes that a toolbox starts beside its own, for work that must not take the toolbox with it.
//!
//! Owns both ends of the socket between them: [`RoleProcess`] in the toolbox, [`Leash`] in the process. What goes through it is
//! serde's. Neither a killed toolbox nor a killed service leaves such a process behind: the socket ends, and the kernel kills what
//! the thread here started. Read [`RoleProcess::start`].

mod frame;
pub(crate) mod host_program;

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::frame::{read, write};

/// How long a process may leave what it is told unread; it is killed then.
const UNREAD: Duration = Duration::from_secs(5);

/// What a toolbox hears of a process that it started.
#[derive(Debug)]
pub enum RoleEvent<T> {
    /// It said this.
    Word(T),
    /// It has ended, and this is how, such as `signal 11 (SIGSEGV)`; empty if it ended by itself and well. The last.
    End(String),
}

/// A process of this toolbox in a role. It is killed when this is dropped.
#[derive(Debug)]
pub struct RoleProcess {
    socket: Mutex<UnixStream>,
    ear: UnixStream,
    child: Arc<Mutex<Child>>,
}

impl RoleProcess {
    /// Starts the process: `ovos-tools toolbox-host --role ROLE FILE`, where FILE is the library that this code is in. It has the
    /// confinement and the environment of this one, with `env` added. `hear` is called on a thread that lives as long as the
    /// process, and may block it.
    ///
    /// # Errors
    /// The process or its thread cannot be started.
    pub fn start<T: DeserializeOwned>(
        role: &str,
        env: &[(&str, &OsStr)],
        mut hear: impl FnMut(RoleEvent<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let (near, far) = UnixStream::pair()?;
        near.set_write_timeout(Some(UNREAD))?;
        let (ear, socket) = (near.try_clone()?, near.try_clone()?);
        let mut command = host_program::command(role)?;
        command.envs(env.iter().copied());
        command.stdin(OwnedFd::from(far)).stdout(io::stderr());
        let (started, starts) = mpsc::sync_channel(1);
        // The kernel kills the process when the thread that started it ends (PDEATHSIG), so this thread does nothing else.
        std::thread::Builder::new()
            .name(format!("role-{role}"))
            .spawn(move || {
                let spawned = command.spawn().map(|child| Arc::new(Mutex::new(child)));
                // It holds the other end of the socket, whose end would never come.
                drop(command);
                let child = spawned.as_ref().ok().map(Arc::clone);
                _ = started.send(spawned);
                let Some(child) = child else { return };
                while let Ok(Some(word)) = read(&mut &near) {
                    hear(RoleEvent::Word(word));
                }
                _ = near.shutdown(Shutdown::Both);
                hear(RoleEvent::End(reap(&child)));
            })?;
        let child = starts.recv().map_err(io::Error::other)??;
        Ok(Self {
            socket: Mutex::new(socket),
            ear,
            child,
        })
    }

    /// Tells the process something.
    ///
    /// # Errors
    /// The process has ended, or has left too much unread.
    pub fn tell(&self, word: &impl Serialize) -> io::Result<()> {
        let written = write(&mut &*self.socket.lock(), word);
        if written.is_err() {
            // A part of a frame may have been sent.
            self.kill();
        }
        written
    }

    /// Kills the process; it is heard of as ended when it has. Never blocks.
    pub fn kill(&self) {
        // Fails only where it has ended.
        _ = self.child.lock().kill();
        _ = self.ear.shutdown(Shutdown::Both);
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.lock().id()
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for a process whose socket has ended, and says how it did.
fn reap(child: &Mutex<Child>) -> String {
    /// How long a process that has closed its socket may take to end.
    const LAST_STEPS: Duration = Duration::from_millis(200);
    const LOOK: Duration = Duration::from_millis(1);
    let mut waited = Duration::ZERO;
    loop {
        // The lock is not held while it waits, so that `kill` never waits.
        match child.lock().try_wait() {
            Ok(Some(status)) => return describe_end(status),
            Ok(None) => {}
            Err(error) => return error.to_string(),
        }
        if waited >= LAST_STEPS {
            _ = child.lock().kill();
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
}

/// How a process ended; empty if well.
fn describe_end(status: ExitStatus) -> String {
    let name = match status.signal() {
        None if status.success() => return String::new(),
        None => return format!("exit code {}", status.code().unwrap_or_default()),
        Some(4) => " (SIGILL)",
        Some(6) => " (SIGABRT)",
        Some(7) => " (SIGBUS)",
        Some(8) => " (SIGFPE)",
        Some(9) => " (SIGKILL)",
        Some(11) => " (SIGSEGV)",
        Some(31) => " (SIGSYS)",
        Some(_) => "",
    };
    format!("signal {}{name}", status.signal().unwrap_or_default())
}

/// The end of a process in a role: what its toolbox tells it, and what it says.
#[derive(Debug)]
pub struct Leash {
    socket: UnixStream,
    mouth: Arc<Mutex<UnixStream>>,
}

/// What says something to the toolbox, from any thread.
#[derive(Clone, Debug)]
pub struct Mouth(Arc<Mutex<UnixStream>>);

impl Leash {
    pub(crate) fn new(socket: UnixStream) -> Self {
        // A clone fails only without descriptors; the socket that ends at once then ends the process.
        let mouth = socket
            .try_clone()
            .or_else(|_| UnixStream::pair().map(|(one, _)| one));
        let mouth = mouth.unwrap_or_else(|_| std::process::abort());
        Self {
            socket,
            mouth: Arc::new(Mutex::new(mouth)),
        }
    }

    /// The next thing that the toolbox says. `None` once the toolbox is gone: the process ends then.
    pub fn hear<T: DeserializeOwned>(&self) -> Option<T> {
        self.socket.set_read_timeout(None).ok()?;
        read(&mut &self.socket).ok().flatten()
    }

    /// As [`Leash::hear`], for a process that ends when it is idle.
    ///
    /// # Errors
    /// Nothing has come for so long.
    pub fn hear_within<T: DeserializeOwned>(&self, limit: Duration) -> io::Result<Option<T>> {
        self.socket.set_read_timeout(Some(limit))?;
        match read(&mut &self.socket) {
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => Err(error),
            word => Ok(word.ok().flatten()),
        }
    }

    /// What speaks for this process.
    #[must_use]
    pub fn mouth(&self) -> Mouth {
        Mouth(Arc::clone(&self.mouth))
    }
}

impl Mouth {
    /// Says something to the toolbox. Blocks while the toolbox does not read; nothing is said to one that is gone.
    pub fn say(&self, word: &impl Serialize) {
        _ = write(&mut &*self.0.lock(), word);
    }
}
