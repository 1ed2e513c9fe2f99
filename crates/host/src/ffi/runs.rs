//! The runs of one toolbox, each of which ends exactly once.
//!
//! Owns what is known about a run between `start` and its end, the stop epoch, and what a cancel or halt that came
//! during a `start` still has to do. Holds its lock for a few instructions and never across a call into the toolbox,
//! so `complete` may come from any thread at any time. Read [`Runs`] first.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use ovos_toolbox_wire::{Completion, Failure};
use protocol::{Raw, RunEnd};
use tokio::sync::oneshot;

use crate::contract::counts::Counters;
use crate::ffi::sync::{Mutex, MutexGuard};
use engine::{Ended, Halt, ProgressSink, RunId};

/// Past this many different halts during one `start`, everything is halted instead.
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
    /// The run that the host thread is inside `start` with.
    starting: Option<Starting>,
    stop_epoch: u64,
    /// Tells a late completion from one for a run that never was.
    newest: u64,
    /// Set when the toolbox is gone: what every later start gets.
    closed: Option<Ended>,
}

struct Run {
    started: bool,
    epoch: u64,
    reply: Reply,
    progress: Option<ProgressSink>,
}

/// Who is told how a run ended.
pub(crate) enum Reply {
    /// A future that waits.
    Waiting(oneshot::Sender<Ended>),
    /// A function that the thread which ends the run calls, for another process. It must return at once.
    Sink(Box<dyn FnOnce(RunEnd) + Send>),
}

impl Reply {
    pub(crate) fn send(self, ended: Ended) {
        match self {
            // There is no receiver when the call was given up in this moment.
            Self::Waiting(reply) => drop(reply.send(ended)),
            Self::Sink(tell) => tell(match ended {
                Ended::Reported(Completion::Output(output)) => RunEnd::Output(Raw::of(&output)),
                Ended::Reported(Completion::Error(failure)) => RunEnd::Error(Raw::of(&failure)),
                Ended::Cancelled => RunEnd::Cancelled,
                // Whether a run got to its toolbox is not the toolbox's to say.
                Ended::Lost(failure) | Ended::NeverBegun(failure) => RunEnd::Lost(Raw::of(&failure)),
            }),
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}

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

/// What has to be done again when a `start` has returned.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub(crate) cancel: bool,
    pub(crate) halts: Vec<Halt>,
}

impl Runs {
    pub(crate) fn new(stop_epoch: u64, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                runs: HashMap::new(),
                starting: None,
                stop_epoch,
                newest: 0,
                closed: None,
            }),
            counters,
        })
    }

    /// Makes a run known, before anything is told to the toolbox.
    ///
    /// # Errors
    /// How the run ended, when it cannot begin at all.
    pub(crate) fn register(
        self: &Arc<Self>,
        run: RunId,
        epoch: u64,
        progress: Option<ProgressSink>,
    ) -> Result<Waiting, Box<Ended>> {
        let (reply, mut ended) = oneshot::channel();
        if !self.register_for(run, epoch, progress, Reply::Waiting(reply)) {
            return Err(Box::new(ended.try_recv().unwrap_or_else(|_| lost())));
        }
        Ok(Waiting {
            runs: Arc::clone(self),
            run,
            ended,
            done: false,
        })
    }

    /// As [`Runs::register`], for a run that is never given up; false when it cannot begin, which `reply` was told.
    pub(crate) fn register_for(
        &self,
        run: RunId,
        epoch: u64,
        progress: Option<ProgressSink>,
        reply: Reply,
    ) -> bool {
        let mut inner = self.lock();
        if let Some(ended) = inner.closed.clone() {
            drop(inner);
            reply.send(ended);
            return false;
        }
        if inner.runs.contains_key(&run.0) {
            drop(inner);
            let text = format!("run {} is under way; a run id is used once", run.0);
            let failure = Failure::new("InternalError", text);
            reply.send(Ended::Reported(Completion::Error(failure)));
            return false;
        }
        inner.newest = inner.newest.max(run.0);
        inner.runs.insert(
            run.0,
            Run {
                started: false,
                epoch,
                reply,
                progress,
            },
        );
        true
    }

    /// Called right before `start`: whether the run may begin. One that may not has been ended.
    pub(crate) fn begin(&self, run: u64) -> bool {
        self.admit(run, true)
    }

    /// As [`Runs::begin`], for a start that is sent to another process: no thread of this one is inside `start` with it.
    pub(crate) fn send_off(&self, run: u64) -> bool {
        self.admit(run, false)
    }

    fn admit(&self, run: u64, inside: bool) -> bool {
        let mut inner = self.lock();
        let Some(epoch) = inner.runs.get(&run).map(|r| r.epoch) else {
            return false; // cancelled or given up while it waited
        };
        if epoch < inner.stop_epoch {
            let stale = inner.runs.remove(&run);
            drop(inner);
            self.counters.stale_starts.add();
            if let Some(stale) = stale {
                stale.reply.send(Ended::Cancelled);
            }
            return false;
        }
        if let Some(entry) = inner.runs.get_mut(&run) {
            entry.started = true;
        }
        if inside {
            inner.starting = Some(Starting {
                run,
                cancelled: false,
                halts: Vec::new(),
            });
        }
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
            refused.reply.send(Ended::Reported(Completion::Error(refusal)));
        }
        // Nothing was started, so there is nothing to cancel; a halt is repeated nevertheless: it is cheap, and the
        // toolbox may have moved before it refused.
        Again {
            cancel: false,
            ..again
        }
    }

    /// Takes a run that has not begun out of the queue; true when the toolbox has to be told instead.
    pub(crate) fn cancel(&self, run: u64) -> bool {
        let mut inner = self.lock();
        if let Some(starting) = inner.starting.as_mut().filter(|s| s.run == run) {
            starting.cancelled = true;
            return true;
        }
        drop(inner);
        !self.withdraw(run)
    }

    /// Takes a run that has not begun out of the queue; false when there is none: an unknown run may be one that was given
    /// up, which the toolbox still has.
    pub(crate) fn withdraw(&self, run: u64) -> bool {
        let mut inner = self.lock();
        if inner.runs.get(&run).is_none_or(|entry| entry.started) {
            return false;
        }
        let queued = inner.runs.remove(&run);
        drop(inner);
        if let Some(queued) = queued {
            queued.reply.send(Ended::Cancelled);
        }
        true
    }

    /// Ends a run that never got to the toolbox.
    pub(crate) fn end_queued(&self, run: u64, ended: Ended) {
        let queued = self.lock().runs.remove(&run);
        if let Some(queued) = queued {
            queued.reply.send(ended);
        }
    }

    /// Notes a halt, so that no older start begins and one in progress is followed by the halt again.
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

    /// Takes the run that a completion is for; `None`, and counted, when there is none.
    pub(crate) fn take(&self, run: u64) -> Option<Ending> {
        let mut inner = self.lock();
        let started = inner.runs.get(&run).is_some_and(|entry| entry.started);
        let entry = if started { inner.runs.remove(&run) } else { None };
        let ever = run != 0 && run <= inner.newest && !inner.runs.contains_key(&run);
        drop(inner);
        match entry {
            Some(Run { reply, .. }) => Some(Ending { reply }),
            None if ever => {
                self.counters.late_completions.add();
                None
            }
            None => {
                self.counters.unknown_completions.add();
                None
            }
        }
    }

    /// Where a run's progress goes, while it runs.
    pub(crate) fn progress(&self, run: u64) -> Option<ProgressSink> {
        self.lock()
            .runs
            .get(&run)
            .filter(|entry| entry.started)?
            .progress
            .clone()
    }

    /// The newest stop it knows of.
    pub(crate) fn stop_epoch(&self) -> u64 {
        self.lock().stop_epoch
    }

    /// Never goes back.
    pub(crate) fn raise_stop_epoch(&self, to: u64) {
        let mut inner = self.lock();
        inner.stop_epoch = inner.stop_epoch.max(to);
    }

    /// Runs that have neither ended nor been given up.
    pub(crate) fn open(&self) -> usize {
        self.lock().runs.len()
    }

    /// Ends what has not begun; the rest is the toolbox's to end.
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
            run.reply.send(Ended::Cancelled);
        }
    }

    /// The toolbox is gone: ends every run with the reason, and every later one too.
    pub(crate) fn lose(&self, why: &Failure) {
        self.lose_and_refuse(why, Ended::Lost(why.clone()));
    }

    /// As [`Runs::lose`], with another end for those that come later.
    pub(crate) fn lose_and_refuse(&self, why: &Failure, later: Ended) {
        let mut inner = self.lock();
        inner.closed.get_or_insert(later);
        let runs = std::mem::take(&mut inner.runs);
        drop(inner);
        for (_, run) in runs {
            run.reply.send(Ended::Lost(why.clone()));
        }
    }

    fn give_up(&self, run: u64) {
        // A run that has not begun never will: nothing is commanded after its call has ended.
        let gone = self.lock().runs.remove(&run);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every way out of the table sends; losing the sender would be a bug, and must not hang the call.
fn lost() -> Ended {
    Ended::Lost(Failure::new("InternalError", "the run was lost by the service"))
}

/// The right to end a run, which exists once.
#[derive(Debug)]
pub(crate) struct Ending {
    reply: Reply,
}

impl Ending {
    pub(crate) fn send(self, ended: Ended) {
        self.reply.send(ended);
    }

    /// As [`Ending::send`], with what only one of the two kinds of waiters needs.
    pub(crate) fn send_either(self, ended: impl FnOnce() -> Ended, end: impl FnOnce() -> RunEnd) {
        match self.reply {
            Reply::Waiting(_) => self.reply.send(ended()),
            Reply::Sink(tell) => tell(end()),
        }
    }
}

/// Resolves when the run has ended; dropping it gives the run up.
#[derive(Debug)]
pub(crate) struct Waiting {
    runs: Arc<Runs>,
    run: RunId,
    ended: oneshot::Receiver<Ended>,
    done: bool,
}

impl Waiting {
    /// Whether its end was told.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
}

impl Future for Waiting {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let polled = Pin::new(&mut self.ended).poll(cx);
        polled.map(|ended| {
            self.done = true;
            ended.unwrap_or_else(|_| lost())
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.done {
            self.runs.give_up(self.run.0);
        }
    }
}
