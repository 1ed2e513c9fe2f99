//! What becomes of answers between a servo and the client.
//!
//! The figures are those of a busy machine and of an independent emulator: at a load of 10 two answers in a row came 20 ms
//! late or more in 3 of 150 calls; answers that came 42 to 55 ms late, all of them or those of one servo after the other,
//! brought down a client that waits 20 ms and matches an answer by its place alone.

use std::time::{Duration, Instant};

/// How late answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lateness {
    /// Not at all.
    #[default]
    Never,
    /// Each by as much.
    Always(Duration),
    /// Each by another time up to this one.
    UpTo(Duration),
    /// Those of one servo after the other, each for some answers, by as much. The other servos are in time.
    InTurn {
        /// How late.
        by: Duration,
        /// How many answers of the whole line until it is the next servo's turn.
        answers: u32,
    },
    /// Some in a row of every so many.
    Bursts {
        /// How late.
        by: Duration,
        /// How many are late.
        of: u32,
        /// Of how many.
        every: u32,
    },
    /// The line stands still for a while, again and again, and gives everything at once then.
    Stalls {
        /// How long it stands still.
        lasting: Duration,
        /// From one standstill to the next.
        every: Duration,
    },
}

/// The way of the answers to the client. Seeded: the same seed does the same to the same answers.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    pub(crate) late: Lateness,
    doubled: f64,
    cut: f64,
    foreign: f64,
    random: Option<fastrand::Rng>,
    /// Answers so far.
    count: u32,
    begun: Option<Instant>,
}

impl Delivery {
    /// Answers that are late in this way.
    #[must_use]
    pub fn new(late: Lateness, seed: u64) -> Self {
        Self {
            late,
            random: Some(fastrand::Rng::with_seed(seed)),
            ..Self::default()
        }
    }

    /// Of so many answers in a hundred comes a second one, up to 30 ms later.
    #[must_use]
    pub fn doubled(mut self, percent: u32) -> Self {
        self.doubled = f64::from(percent) / 100.0;
        self
    }

    /// So many answers in a hundred end too early.
    #[must_use]
    pub fn cut(mut self, percent: u32) -> Self {
        self.cut = f64::from(percent) / 100.0;
        self
    }

    /// Before so many answers in a hundred comes one that is not theirs: of another device, of a length that no client asks for, or the
    /// client's own instruction, as an adapter with an echo gives it back.
    #[must_use]
    pub fn foreign(mut self, percent: u32) -> Self {
        self.foreign = f64::from(percent) / 100.0;
        self
    }

    fn happens(&mut self, chance: f64) -> bool {
        self.random.as_mut().is_some_and(|random| random.f64() < chance)
    }

    fn below(&mut self, end: usize) -> usize {
        self.random
            .as_mut()
            .map_or(0, |random| random.usize(..end.max(1)))
    }

    /// How late the next answer, one of servo `id`, is.
    pub(crate) fn delay(&mut self, id: u8, now: Instant) -> Duration {
        let count = self.count;
        self.count = self.count.wrapping_add(1);
        match self.late {
            Lateness::Never => Duration::ZERO,
            Lateness::Always(by) => by,
            Lateness::UpTo(by) => {
                let part = self.random.as_mut().map_or(0.0, fastrand::Rng::f64);
                by.mul_f64(part)
            }
            // Ids are 1 to 11 on a bus of Johnny Five.
            Lateness::InTurn { by, answers } if count / answers.max(1) % 11 + 1 == u32::from(id) => by,
            Lateness::InTurn { .. } => Duration::ZERO,
            Lateness::Bursts { by, of, every } if count % every.max(1) < of => by,
            Lateness::Bursts { .. } => Duration::ZERO,
            Lateness::Stalls { lasting, every } => {
                let start = *self.begun.get_or_insert(now);
                let passed = now.saturating_duration_since(start).as_micros() % every.as_micros().max(1);
                let passed = Duration::from_micros(u64::try_from(passed).unwrap_or_default());
                lasting.saturating_sub(passed)
            }
        }
    }

    /// What comes instead of an answer of servo `id`, each with how much later it comes. `asked` is what the instruction
    /// had as parameters.
    pub(crate) fn deliver(&mut self, id: u8, answer: Vec<u8>, asked: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let mut come = Vec::new();
        if answer.is_empty() {
            return come;
        }
        if self.happens(self.foreign) {
            let same: Vec<u8> = vec![0x55; answer.len().saturating_sub(6)];
            let foreign = match self.below(3) {
                // No servo of the bus: from another device on the same line.
                0 => crate::frame::encode_status(id.wrapping_add(100), 0, &same),
                1 => crate::frame::encode_status(id, 0, &[0x55; 100]),
                _ => crate::frame::encode_status(id, 0x02, asked.get(..2).unwrap_or_default()),
            };
            come.push((Duration::ZERO, foreign));
        }
        if self.happens(self.doubled) {
            let later = Duration::from_millis(u64::try_from(self.below(30)).unwrap_or_default());
            come.push((later, answer.clone()));
        }
        let mut answer = answer;
        if self.happens(self.cut) {
            let length = self.below(answer.len());
            answer.truncate(length);
        }
        come.push((Duration::ZERO, answer));
        come
    }
}
