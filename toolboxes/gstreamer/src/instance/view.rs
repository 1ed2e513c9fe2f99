//! The state of an instance as seen from other threads.
//!
//! Status queries read this state, so that they are answered while the thread hangs in an element. Read [`View`].

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use ovos_toolbox_sdk::prelude::*;

use super::meters::Flow;

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// On its way to `playing`, or waiting for its first data.
    Starting,
    /// Data flows.
    Playing,
    /// It plays, and for some seconds no data has come to a sink.
    Stalled,
    /// Held by `pause_pipeline`.
    Paused,
    /// Its files are being finished.
    Stopping,
    /// Failed, and started again when the wait is over.
    Restarting,
    /// Over: it came to its end or was stopped.
    Ended,
    /// Over: it failed.
    Failed,
}

impl Phase {
    /// Whether the instance has ended.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed)
    }
}

/// Something a pipeline said.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Said {
    /// `error`, `warning`, `info`, `eos`, `element` or `state`.
    pub(crate) kind: &'static str,
    /// Which element.
    pub(crate) element: String,
    /// What it said.
    pub(crate) message: String,
    /// What it adds for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) debug: Option<String>,
    /// Seconds since the instance was started.
    pub(crate) at_s: f64,
}

impl Said {
    /// One line: element, message, and the last line of the debug text, which often has a file's name.
    pub(crate) fn line(&self) -> String {
        let adds = self.debug.as_deref().and_then(|debug| debug.split_once('\n'));
        match adds.map(|(_, adds)| adds.trim()).filter(|adds| !adds.is_empty()) {
            Some(adds) => format!("{}: {} ({adds})", self.element, self.message),
            None => format!("{}: {}", self.element, self.message),
        }
    }
}

/// How far a pipeline is, asked of its elements.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Clockwork {
    /// Seconds played.
    pub(crate) position_s: Option<f64>,
    /// Seconds in all, when it has an end.
    pub(crate) duration_s: Option<f64>,
    /// From capture to presentation, in milliseconds.
    pub(crate) latency_ms: Option<f64>,
    /// Whether its source is live.
    pub(crate) live: Option<bool>,
    /// Frames that were left out: by sinks and encoders because they were late, or that a live source did not give although
    /// its caps state the rate.
    pub(crate) dropped_frames: u64,
    /// What goes through it.
    pub(crate) flows: Vec<Flow>,
    /// Frames that each element left out because they were late.
    #[serde(skip)]
    pub(crate) late: HashMap<String, u64>,
    /// Frames that live sources did not give.
    #[serde(skip)]
    pub(crate) owed: u64,
}

/// The known state of an instance.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) phase: Phase,
    pub(crate) started: Instant,
    /// When data began to flow in the present run.
    pub(crate) playing_since: Option<Instant>,
    pub(crate) restarts: u32,
    /// End of its trial.
    pub(crate) trial_until: Option<Instant>,
    /// Since when its thread is inside an element, which may hang.
    pub(crate) busy_since: Option<Instant>,
    pub(crate) error: Option<Said>,
    /// Why it ended, in a word or two.
    pub(crate) reason: Option<String>,
    /// Newest last.
    pub(crate) said: VecDeque<Said>,
    pub(crate) clockwork: Clockwork,
    pub(crate) devices: Vec<String>,
    pub(crate) writes: Vec<std::path::PathBuf>,
    /// Whether an end of stream completed the last files.
    pub(crate) finished: Option<bool>,
}

/// Number of messages kept.
const MOST_SAID: usize = 20;
/// Time inside an element after which an instance counts as stuck.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(5);

impl View {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Starting,
            started: Instant::now(),
            playing_since: None,
            restarts: 0,
            trial_until: None,
            busy_since: None,
            error: None,
            reason: None,
            said: VecDeque::new(),
            clockwork: Clockwork::default(),
            devices: Vec::new(),
            writes: Vec::new(),
            finished: None,
        }
    }

    pub(crate) fn say(
        &mut self,
        kind: &'static str,
        element: &str,
        message: &str,
        debug: Option<&str>,
    ) -> Said {
        let said = Said {
            kind,
            element: element.to_owned(),
            message: message.to_owned(),
            debug: debug.map(str::to_owned),
            at_s: (self.started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
        };
        if self.said.len() == MOST_SAID {
            self.said.pop_front();
        }
        self.said.push_back(said.clone());
        said
    }

    /// How long its thread has been stuck inside an element; `None` if it is not stuck.
    pub(crate) fn stuck(&self) -> Option<Duration> {
        let busy = self.busy_since?.elapsed();
        (busy >= STUCK_AFTER).then_some(busy)
    }
}
