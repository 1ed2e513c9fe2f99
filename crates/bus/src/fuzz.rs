//! Properties that hold for any bytes received from the bus socket. Built for tests and fuzzing only.
#![allow(clippy::unwrap_used, reason = "a finding panics")]

use bytes::BytesMut;

use crate::envelope::Envelope;
use crate::message::Message;
use crate::server::gate::{Verdict, judge};
use crate::websocket::frame::{Control, Data, End, Event, FrameError, FrameReader, OpCode, encode};

/// Checks that the result does not depend on how the byte stream is split into reads, that no payload exceeds the
/// limit, and that each event can be encoded and read again. The first byte selects the reading end, the limit and
/// the size of the pieces.
pub fn frames(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else {
        return;
    };
    let end = if how & 1 == 0 { End::Client } else { End::Server };
    let limit = if how & 2 == 0 { 200 } else { 70_000 };
    let piece = [1, 2, 3, 7, 13, 64, 125, 1000][usize::from(how >> 2) % 8];
    let whole = read(end, limit, bytes, usize::MAX);
    assert_eq!(whole, read(end, limit, bytes, piece), "in pieces of {piece}");
    for event in whole.0 {
        let (opcode, payload) = match &event {
            Event::Text(text) => (OpCode::Data(Data::Text), text.as_bytes()),
            Event::Binary(payload) => (OpCode::Data(Data::Binary), &payload[..]),
            Event::Ping(payload) => (OpCode::Control(Control::Ping), &payload[..]),
            Event::NotUtf8(length) => {
                assert!(*length <= limit);
                continue;
            }
            Event::Pong | Event::Close(_) => continue,
        };
        assert!(payload.len() <= limit);
        let mut sent = Vec::new();
        encode(
            &mut sent,
            opcode,
            payload,
            (end == End::Server).then_some([how, 1, 0, 255]),
        );
        assert_eq!(read(end, limit, &sent, usize::MAX), (vec![event], None));
    }
}

/// Returns all events read from `bytes`, fed in pieces of `piece` bytes, and the error that ended the reading.
fn read(end: End, limit: usize, bytes: &[u8], piece: usize) -> (Vec<Event>, Option<FrameError>) {
    let mut reader = FrameReader::new(end, limit, BytesMut::new());
    let mut events = Vec::new();
    for piece in bytes.chunks(piece.min(bytes.len()).max(1)) {
        reader.space().extend_from_slice(piece);
        loop {
            match reader.next() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            }
        }
    }
    (events, None)
}

/// Checks that the notice which the bus broadcasts in place of a rejected frame is itself a frame that it relays.
fn gate(text: &str) {
    if let Verdict::Reject(reply) = judge(text) {
        assert_eq!(judge(&reply), Verdict::Relay, "{reply}");
    }
}

/// Checks that a message which can be read, and its response, survive being written and read again.
pub fn envelope(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    gate(&text);
    let peeked = Envelope::kind_of(&text);
    let Ok(envelope) = Envelope::parse(&text) else {
        return;
    };
    assert!(peeked.is_some() && !envelope.kind.is_empty());
    let Ok(message) = envelope.message() else {
        // If only the data is unreadable, the head can still be built, so an error can be answered.
        assert!(envelope.head().is_ok() || envelope.context_map().is_err());
        return;
    };
    assert_eq!(Message::parse(&message.to_text()).unwrap(), message);
    let answer = message.response(message.data.clone());
    assert_eq!(Message::parse(&answer.to_text()).unwrap(), answer);
    assert_eq!(answer.session_id(), message.session_id());
}

#[cfg(test)]
mod tests {
    #[test]
    fn bus_frames() {
        replay::check("bus_frames", super::frames);
    }

    #[test]
    fn envelope() {
        replay::check("envelope", super::envelope);
    }
}
