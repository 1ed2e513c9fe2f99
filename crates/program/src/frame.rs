//! The format of orders and notices on a socket: a length of four bytes, little endian, then that number of bytes of
//! JSON.
//!
//! Pure: bytes in, orders and notices out, and back. Knows no socket. Read [`Frame`] (to send) and [`Cutter`] (to
//! receive).

use std::ops::Deref;

use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::{Decoder, LengthDelimitedCodec};

const HEADER: usize = size_of::<u32>();

/// The buffer of a body longer than this is not kept for the next bodies.
const LARGE: usize = 1 << 20;

/// Why bytes are not a valid frame. The connection cannot be used after this error.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The other side announces a longer body than is allowed.
    #[error("a frame announces {length} bytes; at most {limit} are allowed")]
    TooLong {
        /// The length that was announced, in bytes.
        length: usize,
        /// The longest that is accepted.
        limit: usize,
    },
    /// The body is no order and no notice.
    #[error("a frame cannot be read: {0}")]
    Body(String),
}

/// The bytes of one order or notice.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// The frame of an order or a notice.
    pub fn of<T: Serialize>(message: &T) -> Self {
        Self::about(message, None)
    }

    /// A frame that names its toolbox, if the other side has several.
    pub fn about<T: Serialize>(message: &T, toolbox: Option<&str>) -> Self {
        let mut bytes = vec![0; HEADER];
        // This cannot fail: orders and notices are structs, and the free JSON in them is text already.
        _ = protocol::write(&mut bytes, message, toolbox);
        // No body comes near 4 GiB: the other side refuses far smaller ones.
        let length = u32::try_from(bytes.len() - HEADER).unwrap_or(u32::MAX);
        bytes[..HEADER].copy_from_slice(&length.to_le_bytes());
        Self(bytes)
    }

    /// The length of the body in bytes.
    pub fn length(&self) -> usize {
        self.0.len() - HEADER
    }

    /// Whether the other side of the data socket would refuse the frame.
    pub fn is_too_long(&self) -> bool {
        self.length() > protocol::MAX_DATA
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Cuts a stream of bytes into the bodies of frames. Holds at most one body of `limit` bytes and the bytes of one read.
#[derive(Debug)]
pub struct Cutter {
    codec: LengthDelimitedCodec,
    bytes: BytesMut,
    limit: usize,
}

impl Cutter {
    /// Cuts bodies of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let codec = LengthDelimitedCodec::builder()
            .little_endian()
            .max_frame_length(limit)
            .new_codec();
        Self {
            codec,
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// Adds bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole body.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], before any byte of that body is kept.
    pub fn body(&mut self) -> Result<Option<BytesMut>, FrameError> {
        let body = self.codec.decode(&mut self.bytes).map_err(|_| self.too_long())?;
        if body.as_ref().is_some_and(|body| body.len() > LARGE) {
            self.bytes = BytesMut::from(&self.bytes[..]);
        }
        Ok(body)
    }

    /// The only error of the codec. It leaves the length in the buffer, so that the length can be read here.
    fn too_long(&self) -> FrameError {
        let length = self
            .bytes
            .first_chunk()
            .map_or(0, |length| u32::from_le_bytes(*length));
        FrameError::TooLong {
            length: length as usize,
            limit: self.limit,
        }
    }

    /// The next order or notice.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        self.body()?.map(|body| read(&body)).transpose()
    }
}

/// Reads the body of a frame.
///
/// # Errors
/// [`FrameError::Body`].
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|error| FrameError::Body(error.to_string()))
}

/// The toolbox that the body of a frame names.
///
/// # Errors
/// [`FrameError::Body`].
pub fn address(body: &[u8]) -> Result<Option<String>, FrameError> {
    protocol::address(body).map_err(|error| FrameError::Body(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ovos_toolbox_wire::Object;
    use proptest::prelude::*;
    use protocol::{MAX_CONTROL, MAX_DATA, Notice, Order, Raw};
    use serde_json::Value;

    /// The bodies in a stream that comes in pieces of these sizes.
    fn through(stream: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(MAX_DATA);
        let (mut rest, mut found) = (stream, Vec::new());
        let mut sizes = sizes.iter().cycle();
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| (*size).clamp(1, rest.len()));
            cutter.push(&rest[..size]);
            rest = &rest[size..];
            while let Some(body) = cutter.body().unwrap() {
                found.push(body.to_vec());
            }
        }
        found
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap();
        [&length.to_le_bytes(), body].concat()
    }

    #[test]
    fn an_order_is_written_with_its_tag_first_and_its_payload_as_it_is() {
        let args: Object = serde_json::from_str(r#"{"n":123456789012345678901234567890,"t":"ü\n"}"#).unwrap();
        let plan = Order::Plan {
            seq: 4,
            tool: "t".into(),
            args: Raw::of(&args),
        };
        let body = r#"{"order":"plan","body":{"seq":4,"tool":"t","args":{"n":123456789012345678901234567890,"t":"ü\n"}}}"#;
        assert_eq!(&*Frame::of(&plan), framed(body.as_bytes()));
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_its_body_is_kept() {
        let mut cutter = Cutter::new(MAX_CONTROL);
        cutter.push(&[0xff; HEADER]);
        let length = u32::MAX as usize;
        let limit = MAX_CONTROL;
        assert_eq!(cutter.body(), Err(FrameError::TooLong { length, limit }));
        assert!(cutter.bytes.capacity() < limit, "{}", cutter.bytes.capacity());
    }

    #[test]
    fn the_room_of_a_large_body_is_not_kept() {
        let mut cutter = Cutter::new(MAX_DATA);
        cutter.push(&framed(&vec![b' '; 8 * LARGE]));
        cutter.push(&[1, 0, 0]);
        drop(cutter.body().unwrap().unwrap());
        cutter.push(&[0, b'{']);
        assert!(cutter.bytes.capacity() < LARGE, "{}", cutter.bytes.capacity());
        assert_eq!(&cutter.body().unwrap().unwrap()[..], b"{");
    }

    proptest! {
        #[test]
        fn frames_survive_being_cut_anywhere(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
            sizes in prop::collection::vec(1usize..64, 1..10),
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
            prop_assert_eq!(through(&stream, &sizes), bodies);
        }

        #[test]
        fn garbage_is_an_error_or_passed_over_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut cutter = Cutter::new(512);
            cutter.push(&bytes);
            while let Ok(Some(body)) = cutter.body() {
                _ = read::<Notice>(&body);
                _ = read::<Order>(&body);
                _ = address(&body);
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            for tag in ["order", "notice"] {
                let body = format!("{{\"{tag}\":{},\"body\":{}}}", Value::from(text.as_str()), Value::from(text.as_str()));
                _ = read::<Notice>(body.as_bytes());
                _ = read::<Order>(body.as_bytes());
            }
        }
    }
}
