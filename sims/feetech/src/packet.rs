//! The packets of Dynamixel's protocol 2.0: `FF FF FD 00 id length length instruction parameters… crc crc`.

use std::time::Instant;

use crate::frame::{Frame, Instruction};

const HEAD: [u8; 4] = [0xFF, 0xFF, 0xFD, 0x00];

/// Removes the next complete instruction from `bytes`; noise before it is dropped. Its addresses and lengths get one byte, as those of
/// the other protocol have: the table ends below 256.
pub(crate) fn take_instruction(bytes: &mut Vec<u8>, now: Instant) -> Option<Frame> {
    loop {
        let start = bytes.windows(4).position(|four| four == HEAD);
        bytes.drain(..start.unwrap_or(bytes.len().saturating_sub(3)));
        let &[_, _, _, _, id, low, high, kind, ..] = bytes.as_slice() else {
            return None;
        };
        let whole = usize::from(u16::from_le_bytes([low, high])) + 7;
        if !(10..1024).contains(&whole) {
            bytes.drain(..1);
            continue;
        }
        if bytes.len() < whole {
            return None;
        }
        if crc(&bytes[..whole - 2]).to_le_bytes() != bytes[whole - 2..whole] {
            bytes.drain(..1);
            continue;
        }
        let instruction = Instruction::from(kind);
        let parameters = without_stuffing(&bytes[7..whole - 2]).split_off(1);
        bytes.drain(..whole);
        let narrow = match instruction {
            Instruction::Read | Instruction::SyncRead | Instruction::SyncWrite => 4,
            Instruction::Write | Instruction::RegWrite => 2,
            _ => 0,
        };
        let (numbers, rest) = parameters.split_at(parameters.len().min(narrow));
        let parameters = numbers.iter().step_by(2).chain(rest).copied().collect();
        return Some(Frame {
            at: now,
            id,
            instruction,
            parameters,
        });
    }
}

/// The answer of a servo.
pub(crate) fn encode_status(id: u8, error: u8, parameters: &[u8]) -> Vec<u8> {
    let mut body = vec![0x55, error];
    for byte in parameters {
        body.push(*byte);
        if body.ends_with(&HEAD[..3]) {
            body.push(0xFD);
        }
    }
    let length = u16::try_from(body.len() + 2).unwrap_or(u16::MAX);
    let mut bytes = [&HEAD[..], &[id], &length.to_le_bytes(), &body].concat();
    bytes.extend(crc(&bytes).to_le_bytes());
    bytes
}

fn without_stuffing(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut body = body.iter().peekable();
    while let Some(byte) = body.next() {
        bytes.push(*byte);
        if bytes.ends_with(&HEAD[..3]) {
            body.next_if(|byte| **byte == 0xFD);
        }
    }
    bytes
}

/// The polynomial is 0x8005.
fn crc(bytes: &[u8]) -> u16 {
    let mut sum = 0u16;
    for byte in bytes {
        sum ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            let carry = sum & 0x8000 != 0;
            sum = (sum << 1) ^ if carry { 0x8005 } else { 0 };
        }
    }
    sum
}
