//! One serial port, and the questions and answers that go through it, one at a time.
//!
//! Owns which answer belongs to which question. An answer carries its servo's id and its registers and no more, and on a
//! busy machine it can come long after its question was given up. So each read asks for some registers more than it
//! needs, as many as no unanswered question to the same servo asked for: id and length tell the answers apart. An
//! acknowledgement has no registers at all, so a write counts when the register reads as it was written.
//!
//! Every function blocks until the servo has answered, at most the port's timeout for each try, and not while a stop
//! waits. Read [`Exchange`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::error::ServoError;
use super::frame::{self, Answers};
use super::port::{Port, Serial};
use super::register::{Family, Span};

/// How often an instruction is tried before its servo counts as silent.
pub(super) const TRIES: usize = 3;
/// How often a stop is looked for while an answer is late.
const SLICE: Duration = Duration::from_millis(2);
/// The line is left to a servo at least this long before the next instruction: both talk on the same wire.
const TURN: Duration = Duration::from_millis(4);
/// How long a job may go on that a stop waits for, while its servos answer in their turn.
const HURRIED: Duration = Duration::from_millis(6);
/// After something broken the line counts as quiet when nothing has come for so long.
const QUIET: Duration = Duration::from_millis(2);
/// How long the answer to a question is reckoned with: one that has come can come twice.
const OWED: Duration = Duration::from_secs(1);
/// How many registers more a read may ask for.
const MORE: u8 = 40;
/// How long a stop listens to the answers of all servos together, and then to each that is missing.
const STOP_TOGETHER: Duration = Duration::from_millis(12);

/// A serial bus, opened when it is needed and opened again when it was lost.
pub(crate) struct Exchange {
    family: Family,
    bus: String,
    path: String,
    baud: u32,
    timeout: Duration,
    port: Option<Box<dyn Port>>,
    /// Set while a stop waits: then nothing waits for a servo any more.
    hurry: Arc<AtomicBool>,
    /// Until when a job may go on that a stop waits for.
    hurried: Option<Instant>,
    /// While a stop runs: the time at which it stops asking.
    bound: Option<Instant>,
    /// Questions whose answers may come, or come again.
    asked: Vec<SentInstruction>,
    /// The servos that were heard since this was asked for.
    heard: BTreeSet<u8>,
}

struct SentInstruction {
    id: u8,
    length: u8,
    at: Instant,
    answered: bool,
}

/// The registers of one servo, and the error byte of its answer.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) error: u8,
}

/// What came of a read.
#[derive(Default)]
pub(super) struct ReadBlocks {
    pub(super) blocks: BTreeMap<u8, Block>,
    /// Why the last answers could not be read.
    broken: Option<&'static str>,
}

/// How long and how often to ask.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    pub(super) wait: Duration,
    pub(super) tries: usize,
}

impl Exchange {
    pub(crate) fn new(bus: &str, path: &str, baud: u32, timeout: Duration, hurry: Arc<AtomicBool>) -> Self {
        Self {
            family: Family::default(),
            bus: bus.to_owned(),
            path: path.to_owned(),
            baud,
            timeout,
            port: None,
            hurry,
            hurried: None,
            bound: None,
            asked: Vec::new(),
            heard: BTreeSet::new(),
        }
    }

    /// A bus whose port is open already, and stays so.
    pub(crate) fn over(bus: &str, port: Box<dyn Port>, timeout: Duration, hurry: Arc<AtomicBool>) -> Self {
        Self {
            port: Some(port),
            ..Self::new(bus, "", 0, timeout, hurry)
        }
    }

    /// The same bus with servos of this family.
    pub(crate) fn of(self, family: Family) -> Self {
        Self { family, ..self }
    }

    /// Whose servos hang on it.
    pub(super) fn family(&self) -> Family {
        self.family
    }

    /// Opens the port when it is closed, and returns whether it did. Sends nothing.
    pub(crate) fn connect(&mut self) -> Result<bool, ServoError> {
        if self.port.is_some() {
            return Ok(false);
        }
        let open = serialport::new(&self.path, self.baud)
            .timeout(self.timeout)
            .open_native();
        let port = open.map_err(|error| ServoError::NoPort {
            bus: self.bus.clone(),
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        let mut port = Serial(port);
        let _ = port.clear();
        self.port = Some(Box::new(port));
        Ok(true)
    }

    /// Closes the port.
    pub(crate) fn close(&mut self) {
        self.port = None;
    }

    /// The error for a port that another program has.
    pub(super) fn lent(&self) -> ServoError {
        ServoError::Lent {
            bus: self.bus.clone(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.port.is_some()
    }

    /// Whether the device behind the open port is still there.
    pub(crate) fn check(&mut self) -> bool {
        if self.port.as_ref().is_some_and(|port| port.check().is_err()) {
            self.port = None;
        }
        self.port.is_some()
    }

    /// The bus's name.
    pub(super) fn bus(&self) -> &str {
        &self.bus
    }

    /// From now on no question waits beyond `lasting`; `None` ends that.
    pub(super) fn bind(&mut self, lasting: Option<Duration>) {
        self.bound = lasting.map(|lasting| self.now() + lasting);
    }

    /// Lets the servos go on for a while; what they say meanwhile is dropped.
    pub(crate) fn pause(&mut self, lasting: Duration) -> Result<(), ServoError> {
        let until = self.now() + lasting;
        while self.now() < until {
            self.over_port(|port| port.take(until))?;
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        self.port.as_ref().map_or_else(Instant::now, |port| port.now())
    }

    pub(super) fn stopped(&self) -> ServoError {
        ServoError::Stopped {
            bus: self.bus.clone(),
        }
    }

    pub(super) fn usual(&self) -> Patience {
        Patience {
            wait: self.timeout,
            tries: TRIES,
        }
    }

    pub(super) fn block(&mut self, id: u8, span: Span, patience: Patience) -> Result<Block, ServoError> {
        let mut found = self.blocks(&[id], span, patience)?;
        match (found.blocks.remove(&id), found.broken) {
            (Some(block), _) => Ok(block),
            _ if self.is_called_off() => Err(self.stopped()),
            (None, Some(reason)) => Err(ServoError::Garbled {
                bus: self.bus.clone(),
                id,
                reason: reason.to_owned(),
            }),
            (None, None) => Err(ServoError::Silent {
                bus: self.bus.clone(),
                id,
                waited: patience.wait,
            }),
        }
    }

    /// The same registers of several servos: first of all together, then of each that is missing.
    pub(super) fn blocks(
        &mut self,
        ids: &[u8],
        span: Span,
        patience: Patience,
    ) -> Result<ReadBlocks, ServoError> {
        let mut found = ReadBlocks::default();
        let mut asked = Vec::new();
        if ids.is_empty() {
            return Ok(found);
        }
        for round in 0..patience.tries {
            let missing: Vec<u8> = ids
                .iter()
                .copied()
                .filter(|id| !found.blocks.contains_key(id))
                .collect();
            let groups: Vec<&[u8]> = match round {
                0 => vec![&missing],
                _ => missing.chunks(1).collect(),
            };
            for group in groups.into_iter().filter(|group| !group.is_empty()) {
                if self.is_called_off() {
                    return Ok(found);
                }
                let Some(until) = self.until(patience.wait, group.len()) else {
                    return Ok(found);
                };
                // A question whose answer could be taken for that of another one is not asked.
                let Some(wide) = self.span_for(group, span) else {
                    continue;
                };
                asked.push((group.to_vec(), wide));
                self.question(group, wide)?;
                self.listen(group, until, (span, &asked), &mut found)?;
                if !group.iter().all(|id| found.blocks.contains_key(id)) {
                    self.call_off();
                }
            }
        }
        if let Some(bound) = self.bound {
            // Late answers are still good for a stop, which asks nothing more.
            self.listen(ids, bound, (span, &asked), &mut found)?;
        }
        Ok(found)
    }

    /// Whether a stop waits, and this job has had its time.
    pub(super) fn is_called_off(&mut self) -> bool {
        if self.bound.is_some() || !self.hurry.load(Ordering::SeqCst) {
            self.hurried = None;
            return false;
        }
        let now = self.now();
        now >= *self.hurried.get_or_insert(now + HURRIED)
    }

    /// A servo did not answer: a job that a stop waits for asks nothing more.
    fn call_off(&mut self) {
        if self.bound.is_none() && self.hurry.load(Ordering::SeqCst) {
            self.hurried = Some(self.now());
        }
    }

    /// Until when to listen to so many servos; `None` where the time of a stop is over.
    fn until(&self, wait: Duration, servos: usize) -> Option<Instant> {
        let now = self.now();
        // Some hundred bytes of each: at 1 Mbit/s a millisecond.
        let all = wait + Duration::from_millis(u64::try_from(servos).unwrap_or_default());
        match self.bound {
            None => Some(now + all),
            Some(bound) if now >= bound => None,
            Some(bound) if servos > 1 => Some(bound.min(now + STOP_TOGETHER)),
            Some(bound) => Some(bound.min(now + TURN)),
        }
    }

    /// The registers to ask for: `span` and as many more that no answer that may still come has this length. `None`
    /// where there is no such length.
    fn span_for(&mut self, ids: &[u8], span: Span) -> Option<Span> {
        let now = self.now();
        self.asked
            .retain(|asked| now.saturating_duration_since(asked.at) < OWED);
        let used = |wide: &Span| {
            let length = wide.length;
            let of_these = move |asked: &&SentInstruction| ids.contains(&asked.id) && asked.length == length;
            self.asked.iter().filter(of_these)
        };
        (0..MORE)
            .filter_map(|more| span.wider(more, self.family))
            // An adapter that gives our own instruction back makes it look like an answer with two registers.
            .filter(|wide| wide.length != 2 && used(wide).all(|asked| asked.answered))
            // Those that were not used lately, the shortest of them; else the one that was not used for longest.
            .min_by_key(|wide| used(wide).map(|asked| asked.at).max())
    }

    fn question(&mut self, ids: &[u8], wide: Span) -> Result<(), ServoError> {
        let bytes = match ids {
            [id] => frame::read(self.family, *id, wide.first, wide.length),
            ids => frame::sync_read(self.family, ids, wide.first, wide.length),
        };
        self.over_port(|port| port.clear())?;
        self.send(&bytes)?;
        let at = self.now();
        let asked = ids.iter().map(|id| SentInstruction {
            id: *id,
            length: wide.length,
            at,
            answered: false,
        });
        self.asked.extend(asked);
        Ok(())
    }

    /// Takes the answers to the questions `asked`, each with its servos, until all of `ids` have answered, at most until `until`.
    fn listen(
        &mut self,
        ids: &[u8],
        until: Instant,
        (span, asked): (Span, &[(Vec<u8>, Span)]),
        found: &mut ReadBlocks,
    ) -> Result<(), ServoError> {
        let begun = self.now();
        let mut answers = Answers::of(self.family);
        while ids.iter().any(|id| !found.blocks.contains_key(id)) && self.goes_on(begun, until) {
            let slice = until.min(self.now() + SLICE);
            let bytes = self.over_port(|port| port.take(slice))?;
            answers.push(&bytes);
            while let Some(answer) = answers.next() {
                self.settle(&answer);
                let of_ours = asked.iter().find(|(ids, wide)| {
                    ids.contains(&answer.id) && usize::from(wide.length) == answer.parameters.len()
                });
                if let Some(bytes) = of_ours.and_then(|(_, wide)| span.within(*wide, &answer.parameters)) {
                    let error = answer.error;
                    found.blocks.entry(answer.id).or_insert(Block { bytes, error });
                }
            }
            if let Some(reason) = answers.broken() {
                found.broken = Some(reason);
                return self.until_quiet(begun, until);
            }
        }
        Ok(())
    }

    /// Whether to go on listening: a stop that waits ends it as soon as the servo had its turn.
    fn goes_on(&self, begun: Instant, until: Instant) -> bool {
        let now = self.now();
        let hurried = self.bound.is_none() && self.hurry.load(Ordering::SeqCst);
        now < until && !(hurried && now >= begun + TURN)
    }

    fn until_quiet(&mut self, begun: Instant, until: Instant) -> Result<(), ServoError> {
        while self.goes_on(begun, until) {
            let slice = until.min(self.now() + QUIET);
            if self.over_port(|port| port.take(slice))?.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// The servos that have said anything since the last call.
    pub(crate) fn take_heard(&mut self) -> BTreeSet<u8> {
        std::mem::take(&mut self.heard)
    }

    /// The error for a bus on which nothing answers.
    pub(crate) fn mute(&self) -> ServoError {
        ServoError::Mute {
            bus: self.bus.clone(),
            path: self.path.clone(),
        }
    }

    fn settle(&mut self, answer: &Answer) {
        self.heard.insert(answer.id);
        let length = answer.parameters.len();
        let this = |asked: &&mut SentInstruction| {
            asked.id == answer.id && usize::from(asked.length) == length && !asked.answered
        };
        if let Some(asked) = self.asked.iter_mut().find(this) {
            asked.answered = true;
        }
    }

    /// Whether an acknowledgement of servo `id` came in its time.
    pub(super) fn acknowledged(&mut self, id: u8) -> Result<bool, ServoError> {
        let begun = self.now();
        let Some(until) = self.until(self.timeout, 1) else {
            return Ok(false);
        };
        let mut answers = Answers::of(self.family);
        while self.goes_on(begun, until) {
            let slice = until.min(self.now() + SLICE);
            let bytes = self.over_port(|port| port.take(slice))?;
            answers.push(&bytes);
            while let Some(answer) = answers.next() {
                self.settle(&answer);
                if answer.id == id && answer.parameters.is_empty() {
                    return Ok(true);
                }
            }
            if answers.broken().is_some() {
                self.until_quiet(begun, until)?;
                return Ok(false);
            }
        }
        Ok(false)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), ServoError> {
        self.over_port(|port| port.send(bytes))
    }

    /// Uses the port, opened where it is closed. A port that fails is lost.
    fn over_port<R>(
        &mut self,
        work: impl FnOnce(&mut dyn Port) -> std::io::Result<R>,
    ) -> Result<R, ServoError> {
        self.connect()?;
        let Some(port) = self.port.as_mut() else {
            return Err(ServoError::Closed {
                bus: self.bus.clone(),
            });
        };
        work(port.as_mut()).map_err(|lost| {
            self.port = None;
            ServoError::PortLost {
                bus: self.bus.clone(),
                path: self.path.clone(),
                reason: lost.to_string(),
            }
        })
    }
}
