//! Encodes and decodes RFC 6455 frames. Pure, no IO.
//!
//! [`FrameReader`] is fed with bytes as they arrive and yields whole messages; [`encode`] writes a frame. tungstenite
//! reads and writes the headers; the checks are here. No extension is ever negotiated, so reserved bits are an error.

use std::io::Cursor;

use bytes::{Buf, Bytes, BytesMut};
use tungstenite::Utf8Bytes;
use tungstenite::protocol::frame::FrameHeader;
pub(crate) use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Largest payload of a ping, a pong or a close frame.
const CONTROL_LIMIT: usize = 125;

/// Buffer space reserved before each read, in bytes: enough for a message of some kilobytes, or for many small ones,
/// in one read.
const READ_SIZE: usize = 64 * 1024;

/// Payloads up to this many bytes are copied out of the buffer.
const SHORT: usize = 4 * 1024;

/// The end that reads. A client masks the frames it sends, a server does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// A message or control frame from the other end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Text(Utf8Bytes),
    /// A text message that is not UTF-8, with its length in bytes; its content is dropped.
    NotUtf8(usize),
    Binary(Bytes),
    Ping(Bytes),
    Pong,
    /// A close frame, with its status code if it has one.
    Close(Option<u16>),
}

/// An error after which the connection has to be closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("message of {size} bytes or more, {limit} are accepted")]
    TooBig { size: usize, limit: usize },
    #[error("websocket protocol violated: {0}")]
    Protocol(&'static str),
}

/// Decodes bytes into messages. It must not be used after an error.
pub(crate) struct FrameReader {
    end: End,
    limit: usize,
    buffer: BytesMut,
    partial: Option<Partial>,
}

/// A fragmented message whose final frame has not arrived.
struct Partial {
    kind: Data,
    data: BytesMut,
}

struct Header {
    is_final: bool,
    opcode: OpCode,
    mask: Option<[u8; 4]>,
    /// Size of the header in bytes.
    size: usize,
    /// Size of the payload in bytes.
    length: usize,
}

impl FrameReader {
    /// Creates a reader for messages of up to `limit` bytes; `read` holds bytes received behind the handshake.
    pub(crate) fn new(end: End, limit: usize, read: BytesMut) -> Self {
        Self {
            end,
            limit,
            buffer: read,
            partial: None,
        }
    }

    /// How many bytes of a message have arrived whose end has not; 0 between messages. Meaningful when
    /// [`next`](Self::next) has returned none.
    pub(crate) fn unfinished(&self) -> usize {
        self.buffer.len() + self.partial.as_ref().map_or(0, |partial| partial.data.len())
    }

    /// The buffer to read the next bytes into, with at least `READ_SIZE` bytes of free capacity.
    pub(crate) fn space(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_SIZE);
        &mut self.buffer
    }

    /// Returns the next event, or none if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, FrameError> {
        loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            if self.buffer.len() < header.size + header.length {
                return Ok(None);
            }
            self.buffer.advance(header.size);
            let mut payload = self.payload(header.length);
            if let Some(mask) = header.mask {
                apply_mask(&mut payload, mask);
            }
            if let Some(event) = self.accept(&header, payload)? {
                return Ok(Some(event));
            }
        }
    }

    /// The next bytes of the buffer. A short payload is copied, because it would otherwise keep the whole buffer, and
    /// reading would need another one.
    fn payload(&mut self, length: usize) -> BytesMut {
        if length > SHORT {
            return self.buffer.split_to(length);
        }
        let payload = BytesMut::from(&self.buffer[..length]);
        self.buffer.advance(length);
        payload
    }

    fn accept(&mut self, header: &Header, payload: BytesMut) -> Result<Option<Event>, FrameError> {
        let (kind, data) = match (header.opcode, self.partial.take()) {
            (OpCode::Control(kind), partial) => {
                self.partial = partial;
                return control(kind, payload.freeze()).map(Some);
            }
            (OpCode::Data(Data::Continue), None) => {
                return Err(FrameError::Protocol(
                    "continuation frame without a message to continue",
                ));
            }
            (OpCode::Data(Data::Continue), Some(mut partial)) => {
                partial.data.extend_from_slice(&payload);
                (partial.kind, partial.data)
            }
            (_, Some(_)) => return Err(FrameError::Protocol("new message inside a fragmented one")),
            (OpCode::Data(kind), None) => (kind, payload),
        };
        if !header.is_final {
            self.partial = Some(Partial { kind, data });
            return Ok(None);
        }
        let data = data.freeze();
        Ok(Some(match kind {
            Data::Text => {
                let size = data.len();
                Utf8Bytes::try_from(data).map_or(Event::NotUtf8(size), Event::Text)
            }
            _ => Event::Binary(data),
        }))
    }

    /// Parses and checks the header of the first frame in the buffer, before its payload has arrived; none if the
    /// header is incomplete.
    fn header(&self) -> Result<Option<Header>, FrameError> {
        let mut bytes = Cursor::new(&self.buffer[..]);
        // The parser refuses unknown opcodes and nothing else.
        let parsed = FrameHeader::parse(&mut bytes).map_err(|_| FrameError::Protocol("unknown opcode"))?;
        let Some((header, length)) = parsed else {
            return Ok(None);
        };
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(FrameError::Protocol("reserved bits are set"));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let is_control = matches!(header.opcode, OpCode::Control(_));
        if is_control && (!header.is_final || length > CONTROL_LIMIT) {
            return Err(FrameError::Protocol("control frame is fragmented or too long"));
        }
        let so_far = self.partial.as_ref().map_or(0, |partial| partial.data.len());
        let whole = length.saturating_add(so_far);
        if whole > self.limit {
            return Err(FrameError::TooBig {
                size: whole,
                limit: self.limit,
            });
        }
        if header.mask.is_some() != (self.end == End::Server) {
            return Err(FrameError::Protocol(
                "wrong masking: a client masks its frames, a server does not",
            ));
        }
        Ok(Some(Header {
            is_final: header.is_final,
            opcode: header.opcode,
            mask: header.mask,
            size: usize::try_from(bytes.position()).unwrap_or(usize::MAX),
            length,
        }))
    }
}

/// Appends one unfragmented frame. A client passes a fresh mask for each frame, a server passes none.
pub(crate) fn encode(out: &mut Vec<u8>, opcode: OpCode, payload: &[u8], mask: Option<[u8; 4]>) {
    let header = FrameHeader {
        opcode,
        mask,
        ..FrameHeader::default()
    };
    out.reserve(payload.len() + 14);
    // Writing to memory does not fail.
    _ = header.format(payload.len() as u64, out);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(&mut out[start..], mask);
    }
}

/// Appends a close frame; cuts the reason at 123 bytes.
pub(crate) fn encode_close(out: &mut Vec<u8>, code: u16, reason: &str, mask: Option<[u8; 4]>) {
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend(reason.bytes().take(CONTROL_LIMIT - 2));
    encode(out, OpCode::Control(Control::Close), &payload, mask);
}

/// Draws the mask of one outgoing frame. Masks keep browser scripts from attacking proxies; no script chooses these
/// payloads, so a fast non-cryptographic generator is enough.
pub(crate) fn draw_mask() -> Option<[u8; 4]> {
    Some(fastrand::u32(..).to_ne_bytes())
}

fn control(kind: Control, payload: Bytes) -> Result<Event, FrameError> {
    match kind {
        Control::Ping => Ok(Event::Ping(payload)),
        Control::Pong => Ok(Event::Pong),
        _ => match payload.len() {
            0 => Ok(Event::Close(None)),
            1 => Err(FrameError::Protocol("close frame with an incomplete status code")),
            _ => Ok(Event::Close(Some(u16::from_be_bytes([payload[0], payload[1]])))),
        },
    }
}

fn apply_mask(data: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = data.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 200_000;

    fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, OpCode::Data(Data::Continue), payload, mask);
        out[0] = first;
        out
    }

    fn text(text: &str) -> Event {
        Event::Text(Utf8Bytes::from(text))
    }

    /// Reads the bytes in pieces of several sizes: the result must not depend on the split.
    fn check(end: End, bytes: &[u8], expected: Result<Vec<Event>, FrameError>) {
        for size in [1, 2, 3, 7, 1000, bytes.len().max(1)] {
            let mut reader = FrameReader::new(end, LIMIT, BytesMut::new());
            let mut events = Vec::new();
            let mut outcome = Ok(());
            'bytes: for piece in bytes.chunks(size) {
                reader.space().extend_from_slice(piece);
                loop {
                    match reader.next() {
                        Ok(Some(event)) => events.push(event),
                        Ok(None) => break,
                        Err(error) => {
                            outcome = Err(error);
                            break 'bytes;
                        }
                    }
                }
            }
            assert_eq!(&outcome.map(|()| events), &expected, "in pieces of {size}");
        }
    }

    #[test]
    fn messages_survive_the_wire_at_every_length() {
        for length in [0, 1, 7, 8, 9, 125, 126, 127, 65_535, 65_536, 70_001] {
            let payload: String = "zażółć🤖".chars().cycle().take(length / 2).collect();
            for (end, mask) in [(End::Server, Some([1, 2, 3, 250])), (End::Client, None)] {
                let mut bytes = Vec::new();
                encode(&mut bytes, OpCode::Data(Data::Text), payload.as_bytes(), mask);
                encode(&mut bytes, OpCode::Data(Data::Binary), &[0xff; 3], mask);
                check(
                    end,
                    &bytes,
                    Ok(vec![
                        text(&payload),
                        Event::Binary(Bytes::from_static(&[0xff; 3])),
                    ]),
                );
            }
        }
    }

    #[test]
    fn fragments_and_control_frames_mix() {
        let bytes = [
            frame(0x01, &"a ż".as_bytes()[..3], None),
            frame(0x89, b"ping", None),
            frame(0x00, &"a ż".as_bytes()[3..], None),
            frame(0x8a, b"", None),
            frame(0x80, b" b", None),
            frame(0x81, b"\xff\xfe", None),
            frame(0x01, b"\xff", None),
            frame(0x80, b"x", None),
            frame(0x81, b"next", None),
            vec![0x81, 126, 0, 1, b'z'],
            frame(0x88, &1001_u16.to_be_bytes(), None),
        ];
        check(
            End::Client,
            &bytes.concat(),
            Ok(vec![
                Event::Ping(Bytes::from_static(b"ping")),
                Event::Pong,
                text("a ż b"),
                Event::NotUtf8(2),
                Event::NotUtf8(2),
                text("next"),
                text("z"),
                Event::Close(Some(1001)),
            ]),
        );
    }

    #[test]
    fn violations_end_the_connection() {
        let big = FrameError::TooBig {
            size: LIMIT + 1,
            limit: LIMIT,
        };
        let mut header = vec![0x81, 127];
        header.extend_from_slice(&(LIMIT as u64 + 1).to_be_bytes());
        check(End::Client, &header, Err(big));

        let huge = [&[0x01, 1, b'x'][..], &[0x80, 127], &u64::MAX.to_be_bytes()].concat();
        let size = usize::MAX;
        check(End::Client, &huge, Err(FrameError::TooBig { size, limit: LIMIT }));

        for (end, bytes) in [
            (End::Client, frame(0xc1, b"x", None)),
            (End::Client, frame(0x83, b"x", None)),
            (End::Client, frame(0x8b, b"x", None)),
            (End::Client, frame(0x80, b"x", None)),
            (
                End::Client,
                [frame(0x01, b"x", None), frame(0x81, b"y", None)].concat(),
            ),
            (End::Client, frame(0x09, b"x", None)),
            (End::Client, frame(0x89, &[0; 126], None)),
            (End::Client, frame(0x88, b"x", None)),
            (End::Client, frame(0x81, b"x", Some([1, 2, 3, 4]))),
            (End::Server, frame(0x81, b"x", None)),
        ] {
            let mut reader = FrameReader::new(end, LIMIT, BytesMut::from(&bytes[..]));
            let outcome = loop {
                match reader.next() {
                    Ok(Some(_)) => {}
                    last => break last,
                }
            };
            assert!(
                matches!(outcome, Err(FrameError::Protocol(_))),
                "{bytes:x?}: {outcome:?}"
            );
        }
    }
}
