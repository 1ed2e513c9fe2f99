//! Latency and throughput, and the comparison of two variants.

use std::io;
use std::time::{Duration, Instant};

use super::peers::Question;
use super::wire::{Wire, is};

/// Rounds of a comparison.
const ROUNDS: usize = 7;

/// Questions per turn that are asked one at a time.
pub(crate) const ONE_BY_ONE: usize = 500;

/// The longest duration of a turn; a turn with many questions in flight takes all of it.
pub(crate) const TURN: Duration = Duration::from_millis(600);

/// Questions in flight then.
pub(crate) const MANY: usize = 64;

/// For each variant: the median of its figures, and of its ratio to another variant in the same round.
///
/// Load varies between rounds; all variants of one round see about the same load.
pub(crate) struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    /// Runs every variant once per round, and once before the first round, which warms them up and is not counted.
    pub(crate) fn play(variants: &mut [&mut dyn FnMut() -> io::Result<f64>]) -> io::Result<Self> {
        let mut figures = vec![Vec::new(); variants.len()];
        for round in 0..=ROUNDS {
            for turn in 0..variants.len() {
                // The order rotates, so that no variant is always first.
                let who = (turn + round) % variants.len();
                let figure = variants[who]()?;
                if round > 0 {
                    figures[who].push(figure);
                }
            }
        }
        Ok(Self(figures))
    }

    pub(crate) fn figure(&self, who: usize) -> f64 {
        median(self.0[who].clone())
    }

    /// Median of the difference between two variants in the same round.
    pub(crate) fn difference(&self, who: usize, than: usize) -> f64 {
        median(
            self.0[who]
                .iter()
                .zip(&self.0[than])
                .map(|(one, other)| one - other)
                .collect(),
        )
    }

    pub(crate) fn ratio(&self, who: usize, to: usize) -> f64 {
        median(
            self.0[who]
                .iter()
                .zip(&self.0[to])
                .map(|(one, other)| one / other)
                .collect(),
        )
    }
}

/// The median.
pub(crate) fn median(figures: Vec<f64>) -> f64 {
    quantile(figures, 0.5)
}

/// The smallest figure that is at least as large as this share of all figures.
pub(crate) fn quantile(mut figures: Vec<f64>, share: f64) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    let rank = (figures.len() as f64 * share).ceil() as usize;
    figures.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// Median latency in microseconds of questions over a bus, one at a time.
pub(crate) fn latency(wire: &mut Wire, question: &Question) -> io::Result<f64> {
    one_by_one(|| {
        wire.send(question.request.as_bytes())?;
        wire.until(&question.answer, |_| ())
    })
}

/// Median duration of `ask` in microseconds. A turn has a time limit: the published service takes 44 ms per answer,
/// because neither it nor its bus sets `TCP_NODELAY`.
pub(crate) fn one_by_one(mut ask: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    let mut times = Vec::with_capacity(ONE_BY_ONE);
    while times.len() < ONE_BY_ONE && start.elapsed() < TURN {
        let start = Instant::now();
        ask()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

/// An error unless an answer has this part.
pub(crate) fn has(answer: &[u8], part: &[u8]) -> io::Result<()> {
    if answer.windows(part.len()).any(|bytes| bytes == part) {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(answer).into_owned()))
}

/// Answers per second with this many questions in flight. Each question is a separate write, as in bus clients.
pub(crate) fn throughput(
    wire: &mut Wire,
    question: &Question,
    under_way: usize,
    time: Duration,
) -> io::Result<f64> {
    let start = Instant::now();
    for _ in 0..under_way {
        wire.send(question.request.as_bytes())?;
    }
    let (mut answers, mut owed) = (0_u32, under_way);
    let figure = loop {
        let count = answers_read(wire, question)?;
        answers += count as u32;
        let elapsed = start.elapsed();
        if elapsed >= time {
            owed -= count;
            break f64::from(answers) / elapsed.as_secs_f64();
        }
        for _ in 0..count {
            wire.send(question.request.as_bytes())?;
        }
        wire.read()?;
    };
    while owed > 0 {
        wire.read()?;
        owed -= answers_read(wire, question)?;
    }
    Ok(figure)
}

fn answers_read(wire: &mut Wire, question: &Question) -> io::Result<usize> {
    let mut answers = 0;
    while let Some(text) = wire.take()? {
        answers += usize::from(is(text, &question.answer));
    }
    Ok(answers)
}

/// The ratio of one to another, and both in microseconds.
pub(crate) fn micros(rounds: &Rounds, who: usize, to: usize) -> String {
    format!(
        "{:.2}x ({:.0} / {:.0} µs)",
        rounds.ratio(who, to),
        rounds.figure(who),
        rounds.figure(to)
    )
}

/// The ratio of one to another, and both in answers per second.
pub(crate) fn per_second(rounds: &Rounds, who: usize, to: usize) -> String {
    format!(
        "{:.2}x ({:.0} / {:.0} /s)",
        rounds.ratio(who, to),
        rounds.figure(who),
        rounds.figure(to)
    )
}
