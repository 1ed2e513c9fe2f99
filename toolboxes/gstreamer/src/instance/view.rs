//! The state of an instance as seen from other threads.
//!
//! Status queries read this state, so that they are answered while its process hangs in an element. Read [`View`].

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::report::{Clockwork, Message, Phase};

/// The known state of an instance.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) phase: Phase,
    pub(crate) started: Instant,
    /// When data began to flow in the present run.
    pub(crate) playing_since: Option<Instant>,
    pub(crate) restarts: u32,
    /// When its process last said something; `None` while it has none.
    pub(crate) last_word: Option<Instant>,
    pub(crate) error: Option<Message>,
    /// Why it ended, in a word or two.
    pub(crate) reason: Option<String>,
    /// Newest last.
    pub(crate) messages: VecDeque<Message>,
    pub(crate) clockwork: Clockwork,
    pub(crate) devices: Vec<String>,
    pub(crate) writes: Vec<std::path::PathBuf>,
    /// Whether an end of stream completed the last files.
    pub(crate) finished: Option<bool>,
}

/// Number of messages kept.
const MAX_MESSAGES: usize = 20;
/// Silence of the process, which otherwise speaks twice a second, after which an instance counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

impl View {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Starting,
            started: Instant::now(),
            playing_since: None,
            restarts: 0,
            last_word: None,
            error: None,
            reason: None,
            messages: VecDeque::new(),
            clockwork: Clockwork::default(),
            devices: Vec::new(),
            writes: Vec::new(),
            finished: None,
        }
    }

    pub(crate) fn say(&mut self, kind: &str, element: &str, message: &str, debug: Option<&str>) -> Message {
        let entry = Message {
            kind: kind.to_owned(),
            element: element.to_owned(),
            message: message.to_owned(),
            debug: debug.map(str::to_owned),
            at_s: (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
        };
        if self.messages.len() == MAX_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(entry.clone());
        entry
    }

    /// Whether an element holds up the thread of its process.
    pub(crate) fn is_stuck(&self) -> bool {
        self.last_word.is_some_and(|last| last.elapsed() >= STUCK_AFTER)
    }
}
