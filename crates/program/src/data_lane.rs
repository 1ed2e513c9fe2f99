//! The thread of a data lane, at either end: reads frames, and sends the bytes that the socket did not take at once.
//!
//! The control lane does not depend on it. Read [`serve`].

use std::io::{ErrorKind, Read};

use protocol::MAX_DATA;

use crate::frame::Cutter;
use crate::lane::LaneSocket;

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
    #[error("it sent nonsense: {0}")]
    Nonsense(String),
}

/// Serves a data lane until it ends; returns the reason. `take` gets the body of each frame; its error says why the
/// body is invalid. `woken` is called whenever the lane may have been woken.
pub fn serve(
    lane: &LaneSocket,
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
    mut woken: impl FnMut(),
) -> LaneError {
    let mut cutter = Cutter::new(MAX_DATA);
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let readable = lane.wait();
        woken();
        if !readable {
            continue;
        }
        match lane.stream().read(&mut bytes) {
            Ok(0) => return LaneError::Closed,
            Ok(count) => cutter.push(&bytes[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return LaneError::Broke(e),
        }
        loop {
            let taken = match cutter.body() {
                Ok(None) => break,
                Ok(Some(body)) => take(&body),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = taken {
                return LaneError::Nonsense(reason);
            }
        }
    }
}
