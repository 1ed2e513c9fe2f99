//! A data lane: reads its frames, and sends the bytes that the socket did not take at once.
//!
//! The control lane does not depend on it. Read [`DataReader`]; [`serve`] is the thread of a lane beside the toolbox.

use std::io::{ErrorKind, Read};

use protocol::MAX_DATA;

use crate::frame::Cutter;
use crate::lane::LaneSocket;

/// Bytes of one read.
const READ_SIZE: usize = 64 * 1024;

/// Why a data lane ended.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The other end closed it.
    #[error("it closed its data connection")]
    Closed,
    /// The socket failed.
    #[error("its data connection broke: {0}")]
    Broke(#[from] std::io::Error),
    /// A frame cannot be read.
    #[error("it sent a frame that cannot be read: {0}")]
    Nonsense(String),
}

/// Reads a data lane.
#[derive(Debug)]
pub struct DataReader {
    cutter: Cutter,
    bytes: Vec<u8>,
}

impl DataReader {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cutter: Cutter::new(MAX_DATA),
            bytes: vec![0; READ_SIZE],
        }
    }

    /// Reads once, and gives the body of each frame that is complete then to `take`, whose error says why the body is
    /// invalid. True if the socket may hold more; on a socket that does not block, `false` says that it held no more.
    ///
    /// # Errors
    /// The lane has ended. It must not be read again.
    pub fn read(
        &mut self,
        lane: &LaneSocket,
        mut take: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<bool, LaneError> {
        let count = match lane.stream().read(&mut self.bytes) {
            Ok(0) => return Err(LaneError::Closed),
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(LaneError::Broke(e)),
        };
        self.cutter.push(&self.bytes[..count]);
        loop {
            let taken = match self.cutter.body() {
                Ok(None) => return Ok(count == self.bytes.len()),
                Ok(Some(body)) => take(&body),
                Err(error) => Err(error.to_string()),
            };
            taken.map_err(LaneError::Nonsense)?;
        }
    }
}

impl Default for DataReader {
    fn default() -> Self {
        Self::new()
    }
}

/// Serves a data lane until it ends; returns the reason. `take` gets the body of each frame; its error says why the
/// body is invalid. `woken` is called whenever the lane may have been woken.
pub fn serve(
    lane: &LaneSocket,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
    mut woken: impl FnMut(),
) -> LaneError {
    let mut reader = DataReader::new();
    loop {
        let readable = lane.wait();
        woken();
        if readable && let Err(end) = reader.read(lane, &mut take) {
            return end;
        }
    }
}
