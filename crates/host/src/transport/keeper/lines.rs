//! The lines that a toolbox's process prints. Read [`Lines`].

use std::io::{ErrorKind, Read};
use std::process::ChildStderr;

use program::level;

use crate::transport::peer::Peer;

/// The longest line; a longer one is cut.
const MAX_LINE: usize = 4096;

/// Reads the lines that a process writes to its standard error.
pub(super) struct Lines {
    stderr: Option<ChildStderr>,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
}

impl Lines {
    pub(super) fn new(stderr: Option<ChildStderr>) -> std::io::Result<Self> {
        if let Some(stderr) = &stderr {
            rustix::io::ioctl_fionbio(stderr, true)?;
        }
        Ok(Self {
            stderr,
            line: Vec::new(),
        })
    }

    /// The pipe to poll; `None` once it is closed.
    pub(super) fn source(&self) -> Option<&ChildStderr> {
        self.stderr.as_ref()
    }

    /// Logs and keeps what was printed.
    pub(super) fn read(&mut self, peer: &Peer) {
        let Some(stderr) = &mut self.stderr else { return };
        let mut bytes = [0; MAX_LINE];
        // The rest of a flood stays in the pipe for the next round, because the control socket comes first.
        for _ in 0..16 {
            match stderr.read(&mut bytes) {
                Ok(0) => {
                    self.stderr = None;
                    break;
                }
                Ok(count) => self.line.extend_from_slice(&bytes[..count]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let mut begin = 0;
        while let Some(rest) = self.line.get(begin..).filter(|rest| !rest.is_empty()) {
            let is_cut = rest.len() > MAX_LINE || self.stderr.is_none();
            let end = rest.iter().position(|byte| *byte == b'\n');
            let Some(end) = end.or_else(|| is_cut.then(|| rest.len().min(MAX_LINE) - 1)) else {
                break;
            };
            let line = String::from_utf8_lossy(&rest[..=end]);
            peer.keep_line(&line);
            peer.unasked.log(level::INFO, "stderr", Ok::<_, String>(&line));
            begin += end + 1;
        }
        self.line.drain(..begin);
    }
}
