//! Which answers have arrived. Pure: time is handed in.
//!
//! A write that succeeded proves nothing: the bytes may have been in the kernel when the bus died. The bus
//! relays every frame to its sender too, in order, so the echo of an answer is its receipt. What is without
//! one when the connection goes is sent again. Not every bus need echo: without a single echo seen, only
//! writes that failed count as not delivered.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use tungstenite::Utf8Bytes;

/// Times an answer is written before it is given up: one that the bus answers by hanging up would otherwise
/// be written forever.
const MAX_WRITES: u8 = 3;

/// Answers on their way.
#[derive(Debug)]
pub(super) struct Delivery {
    on_the_way: VecDeque<Sent>,
    bytes: usize,
    limits: Limits,
    /// This bus was seen to echo.
    echoes: bool,
    given_up: u64,
}

/// What is kept at most: both bounds are on memory, the window is on time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) answers: usize,
    pub(super) bytes: usize,
    /// An answer whose write ended longer than this before the loss has been refused, not lost.
    pub(super) window: Duration,
}

#[derive(Debug)]
struct Sent {
    answer: Unproven,
    /// When its write ended; none while it lasts.
    written: Option<Instant>,
}

/// An answer that has to be written, and how often it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unproven {
    pub(super) text: Utf8Bytes,
    pub(super) writes: u8,
}

impl Delivery {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            on_the_way: VecDeque::new(),
            bytes: 0,
            limits,
            echoes: false,
            given_up: 0,
        }
    }

    /// An answer is about to be written.
    pub(super) fn writing(&mut self, mut answer: Unproven) {
        answer.writes = answer.writes.saturating_add(1);
        self.bytes += answer.text.len();
        self.on_the_way.push_back(Sent {
            answer,
            written: None,
        });
        while self.on_the_way.len() > self.limits.answers || self.bytes > self.limits.bytes {
            // The oldest have had the longest time to be echoed.
            self.forget_oldest();
        }
    }

    /// Everything that was being written is now with the kernel.
    pub(super) fn written(&mut self, now: Instant) {
        for sent in self
            .on_the_way
            .iter_mut()
            .rev()
            .take_while(|sent| sent.written.is_none())
        {
            sent.written = Some(now);
        }
        // Too old to be sent again whenever the connection goes: a bus that never echoes must not pile them up.
        while let Some(Sent {
            written: Some(written),
            ..
        }) = self.on_the_way.front()
            && now.duration_since(*written) > self.limits.window
        {
            self.forget_oldest();
        }
    }

    /// A frame came from the bus. If it is an answer of ours, that one has arrived, and those before it
    /// either have or never will: the bus keeps the order, so it has refused them.
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

    /// The connection is gone: what has to be written again, in order.
    pub(super) fn lost(&mut self, now: Instant) -> Vec<Unproven> {
        self.bytes = 0;
        let (mut again, mut given_up) = (Vec::new(), 0);
        for sent in self.on_the_way.drain(..) {
            let due = match sent.written {
                None => true,
                Some(written) => self.echoes && now.duration_since(written) <= self.limits.window,
            };
            if due && sent.answer.writes < MAX_WRITES {
                again.push(sent.answer);
            } else if due || self.echoes {
                given_up += 1;
            }
        }
        self.given_up += given_up;
        again
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.on_the_way.pop_front() {
            self.bytes -= oldest.answer.text.len();
            self.given_up += u64::from(self.echoes);
        }
    }

    /// Answers that were never echoed and are not tried again.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step {
        /// These are handed to the kernel, this many milliseconds after the start.
        Write(&'static [&'static str], u64),
        /// This one was being written when the connection went.
        Half(&'static str),
        Echo(&'static str),
    }
    use Step::{Echo, Half, Write};

    const LIMITS: Limits = Limits {
        answers: 4,
        bytes: 100,
        window: Duration::from_secs(5),
    };

    fn answer(text: &str) -> Unproven {
        Unproven {
            text: text.into(),
            writes: 0,
        }
    }

    /// The connection goes ten seconds after the start.
    #[track_caller]
    fn check(steps: &[Step], again: &[&str], given_up: u64) {
        let start = Instant::now();
        let mut delivery = Delivery::new(LIMITS);
        for step in steps {
            match step {
                Write(texts, ms) => {
                    texts.iter().for_each(|text| delivery.writing(answer(text)));
                    delivery.written(start + Duration::from_millis(*ms));
                }
                Half(text) => delivery.writing(answer(text)),
                Echo(text) => delivery.echoed(text),
            }
        }
        let lost = delivery.lost(start + Duration::from_secs(10));
        let texts: Vec<&str> = lost.iter().map(|answer| answer.text.as_str()).collect();
        assert_eq!((texts.as_slice(), delivery.given_up()), (again, given_up));
        assert_eq!(
            delivery.lost(start + Duration::from_secs(10)),
            [],
            "nothing is lost twice"
        );
    }

    #[test]
    fn what_was_not_echoed_is_sent_again() {
        check(&[], &[], 0);
        check(&[Write(&["a", "b"], 9000), Echo("a"), Echo("b")], &[], 0);
        check(&[Write(&["a", "b", "c"], 9000), Echo("a")], &["b", "c"], 0);
        check(
            &[Write(&["a", "a", "a"], 9000), Echo("a"), Echo("x")],
            &["a", "a"],
            0,
        );
        // Never an echo: this bus may be one that does not.
        check(&[Write(&["a", "b"], 9999), Echo("x")], &[], 0);
        check(&[Write(&["a"], 9999), Half("b")], &["b"], 0);
        // Written long before the loss and not echoed by a bus that does: refused.
        check(
            &[
                Write(&["a"], 1000),
                Echo("a"),
                Write(&["b"], 4999),
                Write(&["c"], 5000),
            ],
            &["c"],
            1,
        );
        check(
            &[Write(&["a"], 1000), Write(&["b"], 6001), Echo("a"), Echo("b")],
            &[],
            0,
        );
        // The echo of a later one.
        check(&[Write(&["a", "b", "c"], 9000), Echo("b")], &["c"], 0);
    }

    #[test]
    fn memory_is_bounded() {
        check(
            &[Write(&["x", "a", "b", "c", "d", "e"], 9000), Echo("b")],
            &["c", "d", "e"],
            0,
        );
        let mut delivery = Delivery::new(LIMITS);
        let long = "l".repeat(60);
        delivery.writing(answer(&long));
        delivery.writing(answer("a"));
        delivery.writing(answer(&long));
        let left = delivery.lost(Instant::now());
        assert_eq!(
            left.iter().map(|answer| answer.text.len()).collect::<Vec<_>>(),
            [1, 60]
        );
    }

    #[test]
    fn an_answer_that_kills_the_connection_is_given_up() {
        let now = Instant::now();
        let mut delivery = Delivery::new(LIMITS);
        let mut queue = vec![answer("poison")];
        for _ in 0..MAX_WRITES {
            assert_eq!(queue.len(), 1);
            delivery.writing(queue.remove(0));
            queue = delivery.lost(now);
        }
        assert_eq!((queue, delivery.given_up()), (Vec::new(), 1));
    }
}
