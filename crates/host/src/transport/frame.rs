//! The frames between the service and a toolbox's process.
//!
//! Pure: bytes in, frames out, and back. A frame is a header of 16 bytes (length of the body, kind, code, id; little
//! endian) and a body of UTF-8 JSON. Unknown kinds are frames like any other and are passed over, so that either side may
//! be newer. Knows no socket. Read [`Order`] (to the child), [`Notice`] (from it) and [`Decoder`].

mod notice;
mod order;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract::json;
pub(crate) use notice::{Hello, Notice};
pub(crate) use order::{HaltOrder, Opening, Order};

const HEADER: usize = 16;

/// Largest body on the data socket: the largest result that may be configured, with room for escapes.
pub(crate) const MAX_DATA: usize = 64 << 20;
/// Largest body on the control socket: a list of subsystems, or a failure.
pub(crate) const MAX_CONTROL: usize = 1 << 20;

/// The major version of these frames.
pub(crate) const PROTOCOL: u32 = 1;

/// Why bytes are no frame of ours. The connection cannot be used after it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The other side announces more than is ever sent.
    #[error("a frame of kind {kind} announces {length} bytes; at most {limit} are sent")]
    TooLong { kind: u16, length: usize, limit: usize },
    /// The body is not what its kind says.
    #[error("a frame of kind {kind} cannot be read: {reason}")]
    Body { kind: u16, reason: String },
}

/// One frame, not interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u16,
    pub(crate) code: u16,
    pub(crate) id: u64,
    pub(crate) body: Vec<u8>,
}

impl Frame {
    fn new(kind: u16, code: u16, id: u64, body: Vec<u8>) -> Self {
        Self { kind, code, id, body }
    }

    /// A body that serde writes; all of ours are structs and maps with string keys, which it always can.
    fn json<T: Serialize>(kind: u16, code: u16, id: u64, body: &T) -> Self {
        Self::new(kind, code, id, serde_json::to_vec(body).unwrap_or_default())
    }

    fn empty(kind: u16, code: u16, id: u64) -> Self {
        Self::new(kind, code, id, Vec::new())
    }

    /// Whether the other side of the data socket takes it.
    pub(crate) fn is_too_long(&self) -> bool {
        self.body.len() > MAX_DATA
    }

    /// Bytes of its body.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    /// The bytes that are sent.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len());
        // No body of ours comes near 4 GiB: the decoder of the other side refuses far less.
        bytes.extend_from_slice(&u32::try_from(self.body.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        bytes.extend_from_slice(&self.code.to_le_bytes());
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        let text = std::str::from_utf8(&self.body).map_err(|e| self.wrong(&e))?;
        json::read(text).map_err(|e| self.wrong(&e))
    }

    fn text(self) -> Result<String, FrameError> {
        let kind = self.kind;
        String::from_utf8(self.body).map_err(|e| FrameError::Body {
            kind,
            reason: e.to_string(),
        })
    }

    fn wrong(&self, reason: &dyn std::fmt::Display) -> FrameError {
        FrameError::Body {
            kind: self.kind,
            reason: reason.to_string(),
        }
    }
}

/// Cuts a stream of bytes into frames. Holds at most one body of `limit` bytes and what one read brought.
#[derive(Debug)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    from: usize,
    limit: usize,
}

impl Decoder {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            from: 0,
            limit,
        }
    }

    /// Takes what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.from);
        self.from = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > 1 << 20 {
            // One large result is no reason to keep its room for ever.
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], before any of that body is kept.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = &self.bytes[self.from..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [a, b, c, d, k0, k1, c0, c1, id @ ..] = *header;
        let (kind, code) = (u16::from_le_bytes([k0, k1]), u16::from_le_bytes([c0, c1]));
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            return Err(FrameError::TooLong {
                kind,
                length,
                limit: self.limit,
            });
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let body = body.to_vec();
        self.from += HEADER + length;
        Ok(Some(Frame::new(kind, code, u64::from_le_bytes(id), body)))
    }
}
