//! The pseudo terminal that a client opens instead of a serial port.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, ioctl_tiocnxcl, tcgetattr, tcsetattr};

/// Both ends; a client opens the far one by its path.
pub(crate) struct Terminal {
    near: OwnedFd,
    // Held open: without an open far end, reading the near one fails until a client opens it.
    far: OwnedFd,
    path: PathBuf,
}

impl Terminal {
    pub(crate) fn open() -> io::Result<Self> {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&near)?;
        unlockpt(&near)?;
        let path = ptsname(&near, Vec::new())?;
        let far = open(
            &path,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let path = PathBuf::from(path.to_string_lossy().into_owned());
        let mut raw = tcgetattr(&far)?;
        raw.make_raw();
        tcsetattr(&far, OptionalActions::Now, &raw)?;
        Ok(Self { near, far, path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The received bytes, after at most `wait`; empty if there are none.
    pub(crate) fn read(&self, wait: &Timespec) -> io::Result<Vec<u8>> {
        let mut fds = [PollFd::new(&self.near, PollFlags::IN)];
        if poll(&mut fds, Some(wait))? == 0 {
            // A killed client leaves its exclusive mode set while another end, ours, is open.
            let _ = ioctl_tiocnxcl(&self.far);
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; 1024];
        let length = rustix::io::read(&self.near, bytes.as_mut_slice())?;
        bytes.truncate(length);
        Ok(bytes)
    }

    pub(crate) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = rustix::io::write(&self.near, bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
}
