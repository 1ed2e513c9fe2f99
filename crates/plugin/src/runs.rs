//! The runs of one toolbox, each of which ends exactly once.
//!
//! Owns the state of a run between `start` and its end, the stop epoch, and the cancels and halts that came during a
//! `start` and have to be repeated. Holds its lock for a few instructions and never across a call into the toolbox, so
//! `complete` may come from any thread at any time. Read [`Runs`] first.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use ovos_toolbox_wire::{Failure, FailureKind};
use program::payload::Shown;
use program::{Counters, Halt, Steps};
use protocol::{Raw, RunEnd};

use crate::sync::{Mutex, MutexGuard};

/// The number of different halts that are kept during one `start`; beyond it, everything is halted instead.
pub(crate) const MAX_HALTS: usize = 16;

/// The runs of one instance.
#[derive(Debug)]
pub(crate) struct Runs {
    inner: Mutex<Inner>,
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct Inner {
    runs: HashMap<u64, Run>,
    /// The run that the host thread is starting.
    starting: Option<Starting>,
    stop_epoch: u64,
    /// The newest run. Tells a late completion from a completion for a run that never existed.
    newest: u64,
    /// Set when the toolbox is gone: the end of every later run.
    closed: Option<RunEnd>,
}

struct Run {
    started: bool,
    epoch: u64,
    on_end: OnEnd,
    progress: Option<Steps>,
}

/// Receives the end of a run. Called once, on the thread that ends the run; returns at once. Its owner has the right to
/// end the run.
pub(crate) type OnEnd = Box<dyn FnOnce(RunEnd, Shown) + Send>;

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("started", &self.started)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Starting {
    run: u64,
    cancelled: bool,
    halts: Vec<Halt>,
}

/// The cancel and the halts that have to be repeated after a `start` has returned.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub(crate) cancel: bool,
    pub(crate) halts: Vec<Halt>,
}

impl Runs {
    pub(crate) fn new(stop_epoch: u64, counters: Arc<Counters>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                runs: HashMap::new(),
                starting: None,
                stop_epoch,
                newest: 0,
                closed: None,
            }),
            counters,
        }
    }

    /// Enters a run before the toolbox learns of it; false if the run cannot begin, which `on_end` has reported then.
    pub(crate) fn register(&self, run: u64, epoch: u64, progress: Option<Steps>, on_end: OnEnd) -> bool {
        let mut inner = self.lock();
        if let Some(end) = inner.closed.clone() {
            drop(inner);
            on_end(end, None);
            return false;
        }
        if inner.runs.contains_key(&run) {
            drop(inner);
            let text = format!("run id {run} is already in use by a run that has not ended");
            on_end(
                RunEnd::Error(Raw::of(&Failure::new(FailureKind::InternalError, text))),
                None,
            );
            return false;
        }
        inner.newest = inner.newest.max(run);
        inner.runs.insert(
            run,
            Run {
                started: false,
                epoch,
                on_end,
                progress,
            },
        );
        true
    }

    /// Called right before `start`: whether the run may begin. A run that may not begin has ended.
    pub(crate) fn begin(&self, run: u64) -> bool {
        let mut inner = self.lock();
        let Some(epoch) = inner.runs.get(&run).map(|r| r.epoch) else {
            return false; // cancelled or given up while it waited
        };
        if epoch < inner.stop_epoch {
            let stale = inner.runs.remove(&run);
            drop(inner);
            self.counters.add(|counts| &mut counts.stale_starts);
            if let Some(stale) = stale {
                (stale.on_end)(RunEnd::Cancelled, None);
            }
            return false;
        }
        if let Some(entry) = inner.runs.get_mut(&run) {
            entry.started = true;
        }
        inner.starting = Some(Starting {
            run,
            cancelled: false,
            halts: Vec::new(),
        });
        true
    }

    /// Called right after `start` returned.
    pub(crate) fn returned(&self, run: u64, accepted: Result<(), Failure>) -> Again {
        let mut inner = self.lock();
        let again = match inner.starting.take() {
            Some(Starting { cancelled, halts, .. }) => Again {
                cancel: cancelled,
                halts,
            },
            None => Again::default(),
        };
        let Err(refusal) = accepted else { return again };
        let refused = inner.runs.remove(&run);
        drop(inner);
        if let Some(refused) = refused {
            (refused.on_end)(RunEnd::Error(Raw::of(&refusal)), None);
        }
        // Nothing was started, so there is nothing to cancel; a halt is repeated nevertheless: it is cheap, and the
        // toolbox may have moved before it refused.
        Again {
            cancel: false,
            ..again
        }
    }

    /// Takes a run that has not begun out of the queue, so that the caller reports it as cancelled. `None` if the
    /// toolbox has to cancel it instead: an unknown run may be one that was given up and that the toolbox still has.
    pub(crate) fn cancel(&self, run: u64) -> Option<OnEnd> {
        let mut inner = self.lock();
        if let Some(starting) = inner.starting.as_mut().filter(|s| s.run == run) {
            starting.cancelled = true;
            return None;
        }
        drop(inner);
        self.withdraw(run)
    }

    /// Takes a run that has not begun out of the queue, so that the caller reports it as cancelled.
    pub(crate) fn withdraw(&self, run: u64) -> Option<OnEnd> {
        let mut inner = self.lock();
        if inner.runs.get(&run)?.started {
            return None;
        }
        inner.runs.remove(&run).map(|queued| queued.on_end)
    }

    /// Ends a run that never reached the toolbox.
    pub(crate) fn end_queued(&self, run: u64, end: RunEnd) {
        let queued = self.lock().runs.remove(&run);
        if let Some(queued) = queued {
            (queued.on_end)(end, None);
        }
    }

    /// Notes a halt, so that no older start begins, and the halt is repeated after a start that is in progress.
    pub(crate) fn halt(&self, halt: &Halt) {
        let mut inner = self.lock();
        if halt.emergency {
            inner.stop_epoch = inner.stop_epoch.max(halt.stop_epoch);
        }
        let Some(starting) = inner.starting.as_mut() else {
            return;
        };
        let halts = &mut starting.halts;
        if halts
            .iter()
            .any(|h| h.emergency == halt.emergency && h.subsystems == halt.subsystems)
        {
            return;
        }
        if halts.len() < MAX_HALTS {
            halts.push(halt.clone());
        } else {
            let emergency = halt.emergency || halts.iter().any(|h| h.emergency);
            *halts = vec![Halt {
                subsystems: vec!["all".to_owned()],
                emergency,
                stop_epoch: halt.stop_epoch,
            }];
        }
    }

    /// Takes the right to end the run of a completion. If there is no such run, counts the completion and returns
    /// `None`.
    pub(crate) fn take(&self, run: u64) -> Option<OnEnd> {
        let mut inner = self.lock();
        let started = inner.runs.get(&run).is_some_and(|entry| entry.started);
        let entry = if started { inner.runs.remove(&run) } else { None };
        let ever = run != 0 && run <= inner.newest && !inner.runs.contains_key(&run);
        drop(inner);
        match entry {
            Some(Run { on_end, .. }) => Some(on_end),
            None if ever => {
                self.counters.add(|counts| &mut counts.late_completions);
                None
            }
            None => {
                self.counters.add(|counts| &mut counts.unknown_completions);
                None
            }
        }
    }

    /// The receiver of a run's progress, while the run is under way.
    pub(crate) fn progress(&self, run: u64) -> Option<Steps> {
        self.lock()
            .runs
            .get(&run)
            .filter(|entry| entry.started)?
            .progress
            .clone()
    }

    /// Raises the stop epoch; an older one has no effect.
    pub(crate) fn raise_stop_epoch(&self, to: u64) {
        let mut inner = self.lock();
        inner.stop_epoch = inner.stop_epoch.max(to);
    }

    /// The number of runs that have not ended.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.lock().runs.len()
    }

    /// Ends the runs that have not begun; the toolbox ends the others.
    pub(crate) fn cancel_queued(&self) {
        let mut inner = self.lock();
        let queued: Vec<u64> = inner
            .runs
            .iter()
            .filter(|(_, run)| !run.started)
            .map(|(id, _)| *id)
            .collect();
        let queued: Vec<Run> = queued.iter().filter_map(|id| inner.runs.remove(id)).collect();
        drop(inner);
        for run in queued {
            (run.on_end)(RunEnd::Cancelled, None);
        }
    }

    /// Ends every run, and every later one, with the reason why the toolbox is gone.
    pub(crate) fn lose(&self, why: &Failure) {
        let lost = RunEnd::Lost(Raw::of(why));
        let mut inner = self.lock();
        inner.closed.get_or_insert_with(|| lost.clone());
        let runs = std::mem::take(&mut inner.runs);
        drop(inner);
        for (_, run) in runs {
            (run.on_end)(lost.clone(), None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
