//! The packets of Dynamixel's protocol 2.0: `FF FF FD 00 id length length instruction parameters… crc crc`.
//!
//! Pure. From ROBOTIS's e-Manual, "DYNAMIXEL Protocol 2.0": the length counts what follows it, `FF FF FD` in the body gets a second
//! `FD`, and the CRC-16 (polynomial 0x8005, from 0) is over everything before it. Read [`next`].

use super::answer::Answer;
use super::register::Family;

const HEAD: [u8; 4] = [0xFF, 0xFF, 0xFD, 0x00];
/// What looks like the head of a packet in its body.
const LOOKALIKE: [u8; 3] = [0xFF, 0xFF, 0xFD];
/// The instruction of every answer.
const STATUS: u8 = 0x55;
/// Instruction, error and checksum: the least that follows the length of an answer.
const LEAST: usize = 4;
/// The most: every register that we read, and as much again for stuffing.
const MOST: usize = 2 * Family::Xl.end() as usize;
/// The bit of an answer's error that says that the servo has an alarm. The others number what is wrong with an instruction.
const ALERT: u8 = 0x80;

/// An instruction for one servo, or for all of them.
pub(super) fn instruction(id: u8, kind: u8, parameters: &[u8]) -> Vec<u8> {
    let body = stuffed(&[&[kind], parameters].concat());
    // A bus has fewer than 20 servos with at most 9 bytes each.
    let length = u16::try_from(body.len() + 2).unwrap_or(u16::MAX);
    let mut bytes = [&HEAD[..], &[id], &length.to_le_bytes(), &body].concat();
    bytes.extend(crc(&bytes).to_le_bytes());
    bytes
}

/// The first packet of these bytes: how long it is, and the answer that it is, if it is one. An adapter with an echo gives
/// instructions back. `None` where it is not whole yet.
///
/// # Errors
/// They do not begin with a packet.
pub(super) fn next(bytes: &[u8]) -> Result<Option<(usize, Option<Answer>)>, &'static str> {
    let head = bytes.len().min(HEAD.len());
    if bytes[..head] != HEAD[..head] {
        return Err("bytes that are not an answer");
    }
    let &[_, _, _, _, id, low, high, ..] = bytes else {
        return Ok(None);
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    if !(LEAST - 1..=MOST).contains(&length) {
        return Err("bytes that are not an answer");
    }
    let whole = length + 7;
    let Some(packet) = bytes.get(..whole) else {
        return Ok(None);
    };
    let (before, sum) = packet.split_at(whole - 2);
    if crc(before).to_le_bytes() != *sum {
        return Err("checksum error");
    }
    let answer = match *unstuffed(&before[7..]) {
        [STATUS, error, ref parameters @ ..] => Some(Answer {
            id,
            error: error & ALERT,
            parameters: parameters.to_vec(),
        }),
        _ => None,
    };
    Ok(Some((whole, answer)))
}

fn stuffed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    for byte in body {
        bytes.push(*byte);
        if bytes.ends_with(&LOOKALIKE) {
            bytes.push(0xFD);
        }
    }
    bytes
}

fn unstuffed(body: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::with_capacity(body.len());
    let mut is_stuffing = false;
    for byte in body {
        if !is_stuffing || *byte != 0xFD {
            bytes.push(*byte);
        }
        is_stuffing = !is_stuffing && bytes.ends_with(&LOOKALIKE);
    }
    bytes
}

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum: u16, _| match sum & 0x8000 {
            0 => sum << 1,
            _ => sum << 1 ^ 0x8005,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the e-Manual.
    #[test]
    fn packets_are_those_of_the_vendor() {
        for (id, kind, parameters, expected) in [
            (
                1,
                0x01,
                &[][..],
                &[0xFF, 0xFF, 0xFD, 0, 1, 3, 0, 1, 0x19, 0x4E][..],
            ),
            (
                1,
                0x02,
                &[0x84, 0, 4, 0],
                &[0xFF, 0xFF, 0xFD, 0, 1, 7, 0, 2, 0x84, 0, 4, 0, 0x1D, 0x15],
            ),
            (
                1,
                0x03,
                &[0x74, 0, 0, 2, 0, 0],
                &[0xFF, 0xFF, 0xFD, 0, 1, 9, 0, 3, 0x74, 0, 0, 2, 0, 0, 0xCA, 0x89],
            ),
        ] {
            assert_eq!(instruction(id, kind, parameters), expected);
            assert_eq!(next(expected), Ok(Some((expected.len(), None))), "no answer");
        }
        let answer = [0xFF, 0xFF, 0xFD, 0, 1, 8, 0, 0x55, 0, 0xA6, 0, 0, 0, 0x8C, 0xC0];
        let expected = Answer {
            id: 1,
            error: 0,
            parameters: vec![0xA6, 0, 0, 0],
        };
        assert_eq!(next(&answer), Ok(Some((answer.len(), Some(expected)))));
    }

    #[test]
    fn what_looks_like_a_head_in_a_packet_comes_back_and_broken_bytes_do_not() {
        for parameters in [
            &[0xFF, 0xFF, 0xFD][..],
            &[0xFF, 0xFF, 0xFD, 0xFD, 0xFF, 0xFF, 0xFD],
            &[0xFF, 0xFF, 0xFF, 0xFD, 0x00],
            &[0xFD, 0xFF, 0xFF],
        ] {
            let bytes = instruction(7, STATUS, &[&[0x80], parameters].concat());
            let (length, answer) = next(&bytes).unwrap().unwrap();
            let answer = answer.unwrap();
            assert_eq!((length, answer.id, answer.error), (bytes.len(), 7, ALERT));
            assert_eq!(answer.parameters, parameters);
            for end in 0..bytes.len() {
                assert_eq!(next(&bytes[..end]), Ok(None), "{end} bytes of {bytes:?}");
            }
            for at in 0..bytes.len() {
                let mut broken = bytes.clone();
                broken[at] ^= 0x10;
                assert!(!matches!(next(&broken), Ok(Some(_))), "byte {at} of {bytes:?}");
            }
        }
    }
}
