//! What is said on a bus: instructions and answers, in the wire format of its servos.
//!
//! Pure. That of Feetech's is that of Dynamixel's protocol 1, `FF FF id length … checksum`, and stands here; protocol 2.0 has a file of
//! its own (`packet`). An instruction has a number and parameters; an answer has an error byte and parameters, at once in the order of
//! the bytes. Read [`Answers`].

use super::answer::Answer;
use super::packet;
use super::register::Family;

/// The id to which every servo listens.
const EVERY: u8 = 0xFE;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Instruction {
    Read = 0x02,
    Write = 0x03,
    Reboot = 0x08,
    SyncRead = 0x82,
    SyncWrite = 0x83,
}

/// One instruction for one servo. `numbers` are addresses and lengths.
fn instruction(family: Family, id: u8, kind: Instruction, numbers: &[u8], parameters: &[u8]) -> Vec<u8> {
    match family {
        Family::Sts => short(id, kind, &[numbers, parameters].concat()),
        Family::Xl => {
            // They have two bytes there.
            let wide = numbers.iter().flat_map(|number| [*number, 0]);
            let parameters: Vec<u8> = wide.chain(parameters.iter().copied()).collect();
            packet::instruction(id, kind as u8, &parameters)
        }
    }
}

/// An instruction of protocol 1.
fn short(id: u8, kind: Instruction, parameters: &[u8]) -> Vec<u8> {
    // At most 250 parameters: a bus has fewer than 20 servos with at most 6 bytes each.
    let length = u8::try_from(parameters.len() + 2).unwrap_or(u8::MAX);
    let mut bytes = vec![0xFF, 0xFF, id, length, kind as u8];
    bytes.extend_from_slice(parameters);
    bytes.push(checksum(&bytes[2..]));
    bytes
}

/// Reads registers of one servo.
pub(super) fn read(family: Family, id: u8, first: u8, length: u8) -> Vec<u8> {
    instruction(family, id, Instruction::Read, &[first, length], &[])
}

/// Writes registers of one servo.
pub(super) fn write(family: Family, id: u8, first: u8, bytes: &[u8]) -> Vec<u8> {
    instruction(family, id, Instruction::Write, &[first], bytes)
}

/// Restarts one servo.
pub(super) fn reboot(family: Family, id: u8) -> Vec<u8> {
    instruction(family, id, Instruction::Reboot, &[], &[])
}

/// Reads the same registers of several servos; each answers by itself.
pub(super) fn sync_read(family: Family, ids: &[u8], first: u8, length: u8) -> Vec<u8> {
    instruction(family, EVERY, Instruction::SyncRead, &[first, length], ids)
}

/// Writes as many bytes to the same registers of several servos; none answers.
pub(super) fn sync_write(family: Family, first: u8, length: u8, blocks: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut parameters = Vec::new();
    for (id, block) in blocks {
        parameters.push(*id);
        parameters.extend_from_slice(block);
    }
    instruction(
        family,
        EVERY,
        Instruction::SyncWrite,
        &[first, length],
        &parameters,
    )
}

fn checksum(bytes: &[u8]) -> u8 {
    !bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte))
}

/// The bytes that came in since a question, as answers.
///
/// A stream: an answer that is cut off, or bytes that are none, make everything behind them doubtful, since a byte of a
/// broken answer can look like the head of a whole one. So the first such byte ends the reading until the next question.
#[derive(Debug, Default)]
pub(super) struct Answers {
    family: Family,
    bytes: Vec<u8>,
    broken: Option<&'static str>,
}

/// No line sends more in the time of one question: a tenth of a second at 1 Mbit/s.
const MOST: usize = 10_000;
/// The largest length in the head of an answer: every register that we read, and two more bytes.
const LONGEST: u8 = Family::Sts.end() + 2;

impl Answers {
    pub(super) fn of(family: Family) -> Self {
        Self {
            family,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > MOST {
            self.broken = Some("it does not stop sending");
        }
    }

    /// Why nothing more is read.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.broken
    }

    /// The next whole answer.
    pub(super) fn next(&mut self) -> Option<Answer> {
        while self.family == Family::Xl && self.broken.is_none() {
            match packet::next(&self.bytes) {
                Ok(None) => return None,
                Ok(Some((length, answer))) => {
                    self.bytes.drain(..length);
                    if answer.is_some() {
                        return answer;
                    }
                }
                Err(reason) => self.broken = Some(reason),
            }
        }
        if self.broken.is_some() {
            return None;
        }
        let head = self.bytes.get(..self.bytes.len().min(2)).unwrap_or_default();
        if head.iter().any(|byte| *byte != 0xFF) {
            self.broken = Some("bytes that are not an answer");
            return None;
        }
        let &[_, _, id, length, ..] = self.bytes.as_slice() else {
            return None;
        };
        if id == 0xFF || length < 2 {
            self.broken = Some("bytes that are not an answer");
            return None;
        }
        let whole = usize::from(length) + 4;
        let frame = self.bytes.get(..whole)?;
        let (body, sum) = (&frame[2..whole - 1], frame[whole - 1]);
        if checksum(body) != sum {
            self.broken = Some("checksum error");
            return None;
        }
        // One byte of checksum lets one in 256 answers pass that was cut off and goes on with the next one. Such an answer
        // has the head of the next one in it, or ends in the middle of it.
        let behind = self.bytes.get(whole..).unwrap_or_default();
        if behind.iter().take(2).any(|byte| *byte != 0xFF) || body.windows(4).any(is_head) {
            self.broken = Some("bytes that are not an answer");
            return None;
        }
        let answer = Answer {
            id,
            error: frame[4],
            parameters: frame[5..whole - 1].to_vec(),
        };
        self.bytes.drain(..whole);
        Some(answer)
    }
}

/// Whether an answer can begin like this.
fn is_head(bytes: &[u8]) -> bool {
    matches!(bytes, [0xFF, 0xFF, id, length] if *id < EVERY && (2..=LONGEST).contains(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(id: u8, parameters: &[u8]) -> Vec<u8> {
        let mut bytes = short(id, Instruction::Read, parameters);
        // The error byte stands where an instruction has its number.
        bytes[4] = 0;
        let last = bytes.len() - 1;
        bytes[last] = checksum(&bytes[2..last]);
        bytes
    }

    #[test]
    fn what_is_no_whole_answer_gives_none_and_never_panics() {
        let good = whole(3, &[1, 2, 3]);
        // Cut off after two of its twelve bytes of registers; the other ten are a whole answer.
        let mut spliced = whole(3, &[&[1, 2][..], &whole(4, &[7, 8, 9, 10])].concat());
        let last = spliced.len() - 1;
        spliced[last] = checksum(&spliced[2..last]);
        for (name, bytes, answers, broken) in [
            ("nothing", vec![], 0, None),
            ("two", [good.clone(), good.clone()].concat(), 2, None),
            ("half a head", vec![0xFF], 0, None),
            ("cut", good[..6].to_vec(), 0, None),
            (
                "cut, and another",
                [&good[..6], &good].concat(),
                0,
                Some("checksum error"),
            ),
            (
                "noise before",
                [&[0x13, 0x37][..], &good].concat(),
                0,
                Some("bytes that are not an answer"),
            ),
            (
                "noise behind",
                [&good[..], &[0x13]].concat(),
                1,
                Some("bytes that are not an answer"),
            ),
            (
                "cut, and its checksum fits by chance",
                spliced,
                0,
                Some("bytes that are not an answer"),
            ),
            (
                "no length",
                vec![0xFF, 0xFF, 3, 0, 0, 0],
                0,
                Some("bytes that are not an answer"),
            ),
            ("long and never whole", vec![0xFF, 0xFF, 3, 250, 0, 0], 0, None),
        ] {
            let mut stream = Answers::default();
            let mut found = 0;
            for byte in bytes {
                stream.push(&[byte]);
                while stream.next().is_some() {
                    found += 1;
                }
            }
            assert_eq!((found, stream.broken()), (answers, broken), "{name}");
        }
        let mut random = fastrand::Rng::with_seed(30);
        for _ in 0..2_000 {
            let mut stream = Answers::default();
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                random
                    .choice([0xFF, 0xFF, 0, 2, 3, 8, random.clone().u8(..)])
                    .unwrap_or(0)
            })
            .take(64)
            .collect();
            stream.push(&bytes);
            while stream.next().is_some() {}
        }
    }
}
