//! The descriptors that the process of a toolbox inherits: its two sockets to the service are kept, the others are closed. Read
//! [`Sockets`].

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    PidfdFlags, PidfdGetfdFlags, Signal, getpid, pidfd_getfd, pidfd_open, set_parent_process_death_signal,
};

/// The descriptor at which a program of the configuration finds its data socket.
pub const DATA: RawFd = 3;
/// The descriptor at which it finds its control socket.
pub const CONTROL: RawFd = 4;

/// The two sockets to the service. The processes that this one starts do not inherit them, because the service waits for the
/// end of both.
#[derive(Debug)]
pub struct Sockets {
    pub(crate) data: UnixStream,
    pub(crate) control: UnixStream,
}

impl Sockets {
    /// Takes the sockets from descriptors 3 and 4, where a program of the configuration finds them.
    ///
    /// # Errors
    /// The descriptors are not sockets: the service did not start this program.
    pub fn take() -> Result<Self> {
        // This is the only safe way to take a descriptor of which only the number is known.
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        // If one of these descriptors was free, the call above has just taken it, and it already has an owner.
        if [DATA, CONTROL].contains(&own.as_raw_fd()) {
            return Err(ErrorKind::NotConnected.into());
        }
        let take = |number: RawFd| -> Result<UnixStream> {
            let owned: OwnedFd = pidfd_getfd(&own, number, PidfdGetfdFlags::empty())?;
            nix::unistd::close(number)?;
            let socket = UnixStream::from(owned);
            socket.peer_addr()?;
            Ok(socket)
        };
        Self::new(take(DATA)?, take(CONTROL)?)
    }

    /// Takes the sockets from stdin and stdout, where the service's own program finds them, and puts `/dev/null` and stderr in
    /// their place: the toolbox's output goes to stderr, whose last lines the service keeps.
    ///
    /// # Errors
    /// A descriptor cannot be moved.
    pub fn take_stdio() -> Result<Self> {
        let data = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), DATA)?;
        let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), DATA)?;
        let null = File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Self::new(UnixStream::from(data), UnixStream::from(control))
    }

    fn new(data: UnixStream, control: UnixStream) -> Result<Self> {
        // The data socket stays blocking: it has a thread of its own that waits in it.
        control.set_nonblocking(true)?;
        Ok(Self { data, control })
    }
}

/// Takes the leash, the socket between a process in a role and its toolbox, from stdin, and puts `/dev/null` and stderr in the
/// place of stdin and stdout. From then on the kernel ends this process when the toolbox's thread that started it ends.
///
/// # Errors
/// A descriptor cannot be moved, or stdin is no socket: no toolbox started this process.
pub fn take_leash() -> Result<OwnedFd> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let leash = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), DATA)?;
    let leash = UnixStream::from(leash);
    // If the toolbox ended before the call above, its end of the socket is closed, which the role sees.
    leash.peer_addr()?;
    let null = File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(leash.into())
}

/// Makes the kernel end this process with the service and give it no new privileges, and closes every inherited descriptor but
/// stdin, stdout and stderr. Call it before this process opens anything.
///
/// # Errors
/// The kernel refuses one of these.
pub fn stand_alone() -> Result<()> {
    // Only a second safeguard: the sockets already show that the service is gone.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    rustix::thread::set_no_new_privs(true)?;
    close_inherited()
}

/// Closes inherited descriptors. The service opens its own with close-on-exec, but other code in the service may not.
fn close_inherited() -> Result<()> {
    let numbers = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    // Collected first: the folder itself is open while it is read, and closed afterwards.
    let numbers: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    let is_open = |number: &RawFd| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok();
    for number in numbers.into_iter().filter(is_open) {
        nix::unistd::close(number).map_err(Error::from)?;
    }
    Ok(())
}

/// Ends this process at once. Not `exit`: threads of the toolbox may still run, and would race with its destructors.
pub fn kill_self() -> ! {
    _ = rustix::process::kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// A standard input that contains a text. A file in memory holds the text: unlike a pipe, it never blocks the writer if
/// the process does not read.
///
/// # Errors
/// There is no descriptor or no memory for it.
pub fn input(text: &str) -> Result<Stdio> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}
