//! Tracks which answers have arrived. Pure: no clock, no socket.
//!
//! A successful write does not prove delivery: the bytes may still have been in the kernel when the bus died, and
//! that may show only hours later. The bus relays every frame to its sender too, in order, so the echo of an answer
//! confirms its delivery. Answers without an echo when the connection is lost are sent again. A bus need not echo:
//! before the first echo, only answers that were not completely written are sent again.

use std::collections::VecDeque;

use tungstenite::Utf8Bytes;

/// How often an answer is written, and how often the error that then replaces it is written. The bound matters for an
/// answer to which the bus always reacts by closing the connection.
pub(super) const MAX_WRITES: u8 = 3;

/// The answers that are written, or being written, and not yet echoed.
#[derive(Debug)]
pub(super) struct Delivery {
    on_the_way: VecDeque<SentAnswer>,
    bytes: usize,
    limits: Limits,
    /// Whether an answer was ever echoed.
    echoes: bool,
}

/// Bounds on the answers that are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) answers: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
struct SentAnswer {
    answer: UnprovenAnswer,
    /// Whether the whole frame was written to the socket.
    is_written: bool,
}

/// An answer without an echo, and the number of its writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnprovenAnswer {
    /// The frame as last written.
    pub(super) text: Utf8Bytes,
    /// Number of writes so far; those of an error include those of the answer it replaced.
    pub(super) writes: u8,
    /// Whether this is an error in place of an answer that was written too often.
    pub(super) is_error: bool,
}

impl Delivery {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            on_the_way: VecDeque::new(),
            bytes: 0,
            limits,
            echoes: false,
        }
    }

    /// Records an answer that is about to be written. Returns how many older ones were given up because of the
    /// bounds.
    pub(super) fn writing(&mut self, mut answer: UnprovenAnswer) -> u64 {
        answer.writes = answer.writes.saturating_add(1);
        self.bytes += answer.text.len();
        self.on_the_way.push_back(SentAnswer {
            answer,
            is_written: false,
        });
        let mut given_up = 0;
        while (self.on_the_way.len() > self.limits.answers || self.bytes > self.limits.bytes)
            && let Some(oldest) = self.on_the_way.pop_front()
        {
            self.bytes -= oldest.answer.text.len();
            // Without echoes the answer has most likely arrived, and would not be sent again anyway.
            given_up += u64::from(self.echoes);
        }
        given_up
    }

    /// Marks all recorded answers as completely written.
    pub(super) fn written(&mut self) {
        let fresh = self.on_the_way.iter_mut().rev();
        for sent in fresh.take_while(|sent| !sent.is_written) {
            sent.is_written = true;
        }
    }

    /// Compares a received frame with the pending answers. A match has arrived, and is removed together with those
    /// before it: the bus keeps the order, so they have arrived or the bus dropped them.
    pub(super) fn echoed(&mut self, text: &str) {
        let found = self
            .on_the_way
            .iter()
            .position(|sent| sent.answer.text.as_str() == text);
        if let Some(index) = found {
            self.echoes = true;
            for sent in self.on_the_way.drain(..=index) {
                self.bytes -= sent.answer.text.len();
            }
        }
    }

    /// Returns, in order, the answers that may not have arrived when the connection was lost, and forgets all.
    pub(super) fn lost(&mut self) -> Vec<UnprovenAnswer> {
        self.bytes = 0;
        let echoes = self.echoes;
        let sent = self.on_the_way.drain(..);
        sent.filter(|sent| echoes || !sent.is_written)
            .map(|sent| sent.answer)
            .collect()
    }

    /// Whether an answer was ever echoed.
    pub(super) fn echoes(&self) -> bool {
        self.echoes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step {
        /// All of these are written completely.
        Write(&'static [&'static str]),
        /// This one was partly written when the connection broke.
        Half(&'static str),
        Echo(&'static str),
    }
    use Step::{Echo, Half, Write};

    const LIMITS: Limits = Limits {
        answers: 4,
        bytes: 100,
    };

    fn answer(text: &str) -> UnprovenAnswer {
        UnprovenAnswer {
            text: text.into(),
            writes: 0,
            is_error: false,
        }
    }

    #[track_caller]
    fn check(steps: &[Step], again: &[&str], given_up: u64) {
        let mut delivery = Delivery::new(LIMITS);
        let mut dropped = 0;
        for step in steps {
            match step {
                Write(texts) => {
                    for text in *texts {
                        dropped += delivery.writing(answer(text));
                    }
                    delivery.written();
                }
                Half(text) => dropped += delivery.writing(answer(text)),
                Echo(text) => delivery.echoed(text),
            }
        }
        let lost = delivery.lost();
        let texts: Vec<&str> = lost.iter().map(|answer| answer.text.as_str()).collect();
        assert_eq!((texts.as_slice(), dropped), (again, given_up));
        assert_eq!(delivery.lost(), [], "nothing is lost twice");
    }

    #[test]
    fn what_was_not_echoed_is_sent_again() {
        check(&[], &[], 0);
        check(&[Write(&["a", "b"]), Echo("a"), Echo("b")], &[], 0);
        check(&[Write(&["a", "b", "c"]), Echo("a")], &["b", "c"], 0);
        check(&[Write(&["a", "a", "a"]), Echo("a"), Echo("x")], &["a", "a"], 0);
        check(
            &[Write(&["a"]), Echo("a"), Write(&["b"]), Half("c")],
            &["b", "c"],
            0,
        );
        // No echo so far: this bus may be one that never echoes.
        check(&[Write(&["a", "b"]), Echo("x")], &[], 0);
        check(&[Write(&["a"]), Half("b")], &["b"], 0);
        // The echo of a later answer confirms the earlier ones.
        check(&[Write(&["a", "b", "c"]), Echo("b")], &["c"], 0);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        check(
            &[Write(&["a", "b"]), Echo("a"), Write(&["c", "d", "e", "f"])],
            &["c", "d", "e", "f"],
            1,
        );
        // A bus that never echoes.
        check(&[Write(&["a", "b", "c", "d", "e"])], &[], 0);
        let mut delivery = Delivery::new(LIMITS);
        let long = "l".repeat(60);
        delivery.writing(answer(&long));
        delivery.writing(answer("a"));
        delivery.writing(answer(&long));
        let left = delivery.lost();
        assert_eq!(
            left.iter().map(|answer| answer.text.len()).collect::<Vec<_>>(),
            [1, 60]
        );
    }
}
