//! The frames between a toolbox and its processes: a length of four bytes, little endian, then JSON, as the service's own orders have
//! it.

use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::net::UnixStream;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame, in bytes.
const MOST_BYTES: usize = 64 << 20;

/// Writes a frame.
///
/// # Errors
/// The value is too long, or the socket takes no more.
pub(super) fn write(socket: &mut &UnixStream, word: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, word)?;
    let length = frame.len() - 4;
    if length > MOST_BYTES {
        return Err(io::Error::other(format!(
            "a frame of {length} bytes; at most {MOST_BYTES} are allowed"
        )));
    }
    // At most 64 MiB.
    frame[..4].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    socket.write_all(&frame)
}

/// Reads the next frame; `None` at the end of the socket.
///
/// # Errors
/// The socket fails, or what it brings is not a frame of a `T`.
pub(super) fn read<T: DeserializeOwned>(socket: &mut &UnixStream) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match socket.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST_BYTES {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = Vec::new();
    socket.take(length as u64).read_to_end(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}
