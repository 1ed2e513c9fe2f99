//! Encoding and decoding of MAVLink 2 frames.
//!
//! Start with [`decode`] and [`Encoder`].

use mavlink::{MavHeader, MavlinkReader, dialects::common::MavMessage};

use super::address::{Outgoing, SYSTEM};

/// The messages in a datagram; anything that is not a frame of the common dialect is skipped.
#[must_use]
pub fn decode(datagram: &[u8]) -> Vec<(MavHeader, MavMessage)> {
    let mut reader = MavlinkReader::new(datagram);
    let mut messages = Vec::new();
    loop {
        match reader.read_any_message::<MavMessage>() {
            Ok(message) => messages.push(message),
            Err(mavlink::error::MessageReadError::Io(_)) => return messages,
            // An unknown message, which the reader has skipped.
            Err(_) => {}
        }
    }
}

/// Encodes frames with MAVLink's sequence numbers, one series per component.
#[derive(Debug, Default)]
pub struct Encoder {
    sequences: std::collections::BTreeMap<u8, u8>,
}

impl Encoder {
    /// Encodes a message as a frame.
    pub fn encode(&mut self, outgoing: &Outgoing) -> Vec<u8> {
        let sequence = self.sequences.entry(outgoing.component).or_default();
        let header = MavHeader {
            system_id: u32::from(SYSTEM),
            component_id: outgoing.component,
            sequence: *sequence,
        };
        *sequence = sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        // Writing to a Vec does not fail.
        let _ = mavlink::write_v2_msg(&mut bytes, header, &outgoing.message);
        bytes
    }
}
