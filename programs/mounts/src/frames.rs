//! The frames of orders and notices on a socket: a length of four bytes, little endian, followed by that many bytes of JSON.

use std::io::{ErrorKind, Read};

use protocol::{Notice, Order};

const HEADER: usize = size_of::<u32>();

/// Why a lane cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// The announced length is larger than any frame that the service sends.
    #[error("a frame announces {length} bytes; at most {limit} are sent")]
    TooLong { length: usize, limit: usize },
    /// The frame is not an order.
    #[error("a frame cannot be read: {0}")]
    Body(#[from] serde_json::Error),
    /// The socket failed, or ended inside a frame.
    #[error("the socket failed: {0}")]
    Socket(#[from] std::io::Error),
}

/// Reads the next order; `None` at the end of the lane. Blocks.
pub(crate) fn read(from: &mut impl Read, limit: usize) -> Result<Option<Order>, FrameError> {
    let mut header = [0; HEADER];
    match from.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let length = u32::from_le_bytes(header) as usize;
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Returns the frame of a notice.
pub(crate) fn frame(notice: &Notice) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    // This cannot fail: notices are structs, and their free JSON was written before.
    _ = serde_json::to_writer(&mut bytes, notice);
    // No notice approaches 4 GiB: results are limited by `max_result_bytes`.
    let length = u32::try_from(bytes.len() - HEADER).unwrap_or(u32::MAX);
    bytes[..HEADER].copy_from_slice(&length.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

    use super::*;

    fn written(json: &str) -> Vec<u8> {
        let length = u32::try_from(json.len()).unwrap();
        [&length.to_le_bytes()[..], json.as_bytes()].concat()
    }

    #[test]
    fn orders_come_whole_or_not_at_all() {
        let beat = r#"{"order":"beat","body":{"seq":8}}"#;
        let newer = r#"{"order":"newer","body":{"any":[1]}}"#;
        let bytes = [written(beat), written(newer)].concat();
        let mut from = &bytes[..];
        assert!(matches!(
            read(&mut from, 99).unwrap(),
            Some(Order::Beat { seq: 8 })
        ));
        assert!(matches!(read(&mut from, 99).unwrap(), Some(Order::Unknown)));
        assert!(read(&mut from, 99).unwrap().is_none());
        let long = read(&mut &written(beat)[..], 8).unwrap_err();
        assert!(
            matches!(long, FrameError::TooLong { length: 33, limit: 8 }),
            "{long}"
        );
        let cut = read(&mut &written(beat)[..9], 99).unwrap_err();
        assert!(matches!(cut, FrameError::Socket(_)), "{cut}");
        let wrong = read(&mut &written(r#"{"order":"beat","body":{}}"#)[..], 99).unwrap_err();
        assert!(matches!(wrong, FrameError::Body(_)), "{wrong}");
    }

    #[test]
    fn a_notice_is_framed_with_its_name_first() {
        let bytes = frame(&Notice::Beat { seq: 8 });
        assert_eq!(bytes, written(r#"{"notice":"beat","body":{"seq":8}}"#));
    }
}
