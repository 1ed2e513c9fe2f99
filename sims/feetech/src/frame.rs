//! The wire format: `FF FF id length instruction parameters… checksum`.

use std::time::Instant;

/// The broadcast id: every servo listens to it, and none answers it except to a ping.
pub const BROADCAST: u8 = 0xFE;

/// An instruction to a servo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are the vendor's")]
pub enum Instruction {
    Ping,
    Read,
    Write,
    RegWrite,
    Action,
    Reboot,
    SyncRead,
    SyncWrite,
    Other(u8),
}

impl From<u8> for Instruction {
    fn from(byte: u8) -> Self {
        match byte {
            0x01 => Self::Ping,
            0x02 => Self::Read,
            0x03 => Self::Write,
            0x04 => Self::RegWrite,
            0x05 => Self::Action,
            0x08 => Self::Reboot,
            0x82 => Self::SyncRead,
            0x83 => Self::SyncWrite,
            other => Self::Other(other),
        }
    }
}

/// An instruction that was received whole, with the right checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When its last byte arrived.
    pub at: Instant,
    /// The addressed servo; [`BROADCAST`] for all and for the two sync instructions.
    pub id: u8,
    /// The instruction.
    pub instruction: Instruction,
    /// Its parameters.
    pub parameters: Vec<u8>,
}

impl Frame {
    /// The writes that it contains: `(id, address, bytes)` for each servo.
    #[must_use]
    pub fn writes(&self) -> Vec<(u8, u8, Vec<u8>)> {
        match (self.instruction, self.parameters.as_slice()) {
            (Instruction::Write | Instruction::RegWrite, [address, bytes @ ..]) => {
                vec![(self.id, *address, bytes.to_vec())]
            }
            (Instruction::SyncWrite, [address, length, blocks @ ..]) => blocks
                .chunks_exact(usize::from(*length) + 1)
                .map(|block| (block[0], *address, block[1..].to_vec()))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The little-endian word that it writes to `address` of servo `id`, if any.
    #[must_use]
    pub fn word(&self, id: u8, address: u8) -> Option<u16> {
        self.writes().into_iter().find_map(|(servo, first, bytes)| {
            let at = usize::from(address.checked_sub(first)?);
            (servo == id || servo == BROADCAST)
                .then(|| bytes.get(at..at + 2))
                .flatten()
                .map(|word| u16::from_le_bytes([word[0], word[1]]))
        })
    }

    /// The byte that it writes to `address` of servo `id`, if any.
    #[must_use]
    pub fn byte(&self, id: u8, address: u8) -> Option<u8> {
        self.writes().into_iter().find_map(|(servo, first, bytes)| {
            let at = usize::from(address.checked_sub(first)?);
            (servo == id || servo == BROADCAST)
                .then(|| bytes.get(at).copied())
                .flatten()
        })
    }
}

/// Removes the next complete instruction from `bytes`, and the noise before it. `None` until it is complete: call again with more
/// bytes.
pub(crate) fn take_instruction(bytes: &mut Vec<u8>, now: Instant) -> Option<Frame> {
    loop {
        let start = bytes.windows(2).position(|pair| pair == [0xFF, 0xFF]);
        bytes.drain(..start.unwrap_or(bytes.len().saturating_sub(1)));
        let &[_, _, id, length, ..] = bytes.as_slice() else {
            return None;
        };
        let whole = usize::from(length) + 4;
        if id == 0xFF || length < 2 {
            bytes.drain(..1);
            continue;
        }
        if bytes.len() < whole {
            return None;
        }
        let body = &bytes[2..whole - 1];
        if checksum(body) != bytes[whole - 1] {
            bytes.drain(..1);
            continue;
        }
        let frame = Frame {
            at: now,
            id,
            instruction: Instruction::from(bytes[4]),
            parameters: bytes[5..whole - 1].to_vec(),
        };
        bytes.drain(..whole);
        return Some(frame);
    }
}

/// Returns the bytes of a servo's answer: its id, its error bits and the parameters that it was asked for.
pub(crate) fn encode_status(id: u8, error: u8, parameters: &[u8]) -> Vec<u8> {
    let length = u8::try_from(parameters.len() + 2).unwrap_or(u8::MAX);
    let mut bytes = vec![0xFF, 0xFF, id, length, error];
    bytes.extend_from_slice(parameters);
    bytes.push(checksum(&bytes[2..]));
    bytes
}

fn checksum(bytes: &[u8]) -> u8 {
    !bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_found_in_noise_and_in_pieces() {
        let ping = [0xFF, 0xFF, 0x01, 0x02, 0x01, 0xFB];
        for (name, noise) in [
            ("nothing", &[][..]),
            ("noise", &[0x00, 0x12]),
            ("half a header", &[0xFF]),
            ("a broken instruction", &[0xFF, 0xFF, 0x01, 0x02, 0x01, 0x00]),
        ] {
            let mut bytes = noise.to_vec();
            for (at, byte) in ping.iter().enumerate() {
                assert_eq!(
                    take_instruction(&mut bytes, Instant::now()),
                    None,
                    "{name}: whole after {at} bytes"
                );
                bytes.push(*byte);
            }
            let frame = take_instruction(&mut bytes, Instant::now()).unwrap();
            assert_eq!((frame.id, frame.instruction), (1, Instruction::Ping), "{name}");
            assert!(bytes.is_empty(), "{name}: {bytes:?} is left");
        }
    }
}
