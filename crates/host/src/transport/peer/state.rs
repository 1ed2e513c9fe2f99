//! What the service knows of one open toolbox, and what it notes before it sends an order.
//!
//! Read [`Peer`], then [`State`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Completion, Failure, FailureKind, Manifest, Start};
use parking_lot::{Mutex, MutexGuard};
use protocol::{Counts, Functions};
use tokio::sync::{oneshot, watch};

use crate::contract::services::{HostServices, Limits, Open, Origin};
use crate::transport::journal;
use crate::transport::lanes::Lanes;
use crate::transport::negative_cache::NegativeCache;
use engine::{NoAnswer, ProgressSink, RunResult};
use program::message_limits::MessageLimits;
use program::moves;

/// The state of one open toolbox that the service's threads share.
pub(crate) struct Peer {
    pub(crate) origin: Origin,
    pub(crate) services: Arc<dyn HostServices>,
    pub(crate) unasked: MessageLimits,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) limits: Limits,
    pub(crate) lanes: Arc<dyn Lanes>,
    /// The number of emergency stops since the toolbox last agreed to a resume.
    pub(crate) stopped: AtomicU64,
    pub(crate) end: watch::Sender<Option<End>>,
    /// Whether the hardware is at rest, as far as possible; set a while after the end.
    pub(crate) rested: watch::Sender<bool>,
    /// The tools for which the toolbox has no plan, and those for which it has no conclusion.
    pub(crate) planless: NegativeCache,
    pub(crate) conclusionless: NegativeCache,
    state: Mutex<State>,
    /// The source of order numbers. Toolboxes that share a process share it, so that an answer to one toolbox's order
    /// cannot be taken for an answer to another's.
    ids: Arc<AtomicU64>,
}

/// How a toolbox ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// It closed as it was asked to; whether in time.
    Closed(bool),
    /// It did not close in time, and nothing can end it. It can still be halted, and may close later.
    Abandoned,
    Died(Death),
}

/// How a toolbox's process ended without being asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The signal, the exit code or the limit that the process broke, and the last lines that it wrote.
    pub reason: String,
    /// Whether a motion was under way.
    pub moving: bool,
    /// Whether the process asked by its exit code to be started again.
    pub asked: bool,
}

impl Death {
    /// A death while nothing moved.
    pub(crate) fn of(reason: String) -> Self {
        Self {
            reason,
            moving: false,
            asked: false,
        }
    }
}

#[derive(Default)]
pub(crate) struct State {
    /// The functions of the toolbox; `None` until it is open.
    pub(super) functions: Option<Functions>,
    /// Whether the order to open was sent, or is about to be sent.
    pub(super) opens: bool,
    /// The number of the order to open, and the receiver of its result.
    pub(super) opened: Option<(u64, oneshot::Sender<Result<(), Failure>>)>,
    pub(crate) asks: HashMap<u64, oneshot::Sender<Result<String, NoAnswer>>>,
    pub(crate) commands: HashMap<u64, Command>,
    pub(crate) runs: HashMap<u64, Run>,
    /// The newest stop epoch; starts with an older one are not sent.
    pub(crate) stop_epoch: u64,
    /// The newest run. The end of a run with a higher number is of one that never existed.
    pub(super) newest: u64,
    /// The runs that move something and that the toolbox has not ended, including those that were given up.
    pub(super) moving: HashSet<u64>,
    /// The requests of the toolbox that have no answer yet. The toolbox's side limits their number, and the service
    /// checks the limit again.
    pub(crate) requests: HashSet<u64>,
    /// The counts that the toolbox's side sent last.
    pub(crate) counts: Counts,
    pub(super) lines: VecDeque<String>,
    /// Why the keeper has to end the process.
    pub(super) given_up: Option<String>,
    pub(super) closing: Option<Instant>,
    /// Whether the toolbox closed in time, and when it reported this.
    pub(super) closed: Option<(bool, Instant)>,
    pub(super) gone: Option<Departure>,
}

/// A command without an answer yet.
pub(crate) struct Command {
    pub(super) reply: oneshot::Sender<Result<(), NoAnswer>>,
    /// When a halt was sent.
    pub(super) halted: Option<Instant>,
}

/// A run that was sent.
pub(crate) struct Run {
    pub(super) ended: oneshot::Sender<RunResult>,
    pub(super) progress: Option<ProgressSink>,
}

/// Why no order reaches the toolbox any more, except perhaps a halt.
pub(super) struct Departure {
    pub(super) why: NoAnswer,
    /// Whether a halt still reaches it.
    pub(super) halts: bool,
}

impl Peer {
    pub(crate) fn new(
        open: &Open,
        manifest: Arc<Manifest>,
        services: Arc<dyn HostServices>,
        lanes: Arc<dyn Lanes>,
    ) -> Self {
        let origin = Origin {
            toolbox_id: manifest.id.as_str().into(),
            generation: open.generation,
        };
        Self {
            unasked: MessageLimits::new(Arc::default(), journal::of(origin.clone())),
            origin,
            services,
            manifest,
            limits: open.limits.clone(),
            lanes,
            stopped: AtomicU64::new(0),
            end: watch::Sender::new(None),
            rested: watch::Sender::new(false),
            planless: NegativeCache::default(),
            conclusionless: NegativeCache::default(),
            state: Mutex::new(State {
                stop_epoch: open.stop_epoch,
                ..State::default()
            }),
            ids: Arc::new(AtomicU64::new(1)),
        }
    }

    /// Uses a shared source of order numbers.
    #[must_use]
    pub(crate) fn numbered_by(self, ids: Arc<AtomicU64>) -> Self {
        Self { ids, ..self }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn has(&self, which: fn(&Functions) -> bool) -> bool {
        self.lock().functions.as_ref().is_some_and(which)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Raises the stop epoch; an older one has no effect.
    pub(crate) fn raise_stop_epoch(&self, to: u64) {
        let mut state = self.lock();
        state.stop_epoch = state.stop_epoch.max(to);
    }

    /// Notes that the toolbox is about to get the order to open: from now on it may use its hardware.
    pub(crate) fn opens(&self) {
        self.lock().opens = true;
    }

    /// The receiver of the result of the order `seq`, which opens the toolbox.
    ///
    /// # Errors
    /// The toolbox is gone.
    pub(crate) fn will_open(&self, seq: u64) -> Result<oneshot::Receiver<Result<(), Failure>>, Failure> {
        let (sender, opened) = oneshot::channel();
        let mut state = self.lock();
        if let Some(refusal) = self.refusal(&state) {
            return Err(refusal.into_failure());
        }
        state.opened = Some((seq, sender));
        Ok(opened)
    }

    /// Notes a question that is about to be sent.
    ///
    /// # Errors
    /// The order must not be sent.
    pub(crate) fn asked(
        &self,
        seq: u64,
    ) -> Result<oneshot::Receiver<Result<String, NoAnswer>>, Box<NoAnswer>> {
        let (reply, answer) = oneshot::channel();
        let full = self.lanes.is_full();
        let mut state = self.lock();
        if let Some(refusal) = self.refusal(&state) {
            return Err(Box::new(refusal));
        }
        if full || state.asks.len() >= self.limits.max_queued {
            return Err(Box::new(self.busy().into()));
        }
        state.asks.insert(seq, reply);
        Ok(answer)
    }

    /// Notes a command that is about to be sent; `halted` is the time if the command is a halt.
    ///
    /// # Errors
    /// The order must not be sent.
    pub(crate) fn commanded(
        &self,
        seq: u64,
        halted: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<(), NoAnswer>>, Box<NoAnswer>> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        let halts = state.gone.as_ref().is_some_and(|gone| gone.halts);
        if let Some(refusal) = self.refusal(&state).filter(|_| !halts) {
            return Err(Box::new(refusal));
        }
        state.commands.insert(seq, Command { reply, halted });
        Ok(answer)
    }

    /// Notes a run whose start is about to be sent.
    ///
    /// # Errors
    /// The end of the run, if the start must not be sent.
    pub(crate) fn begins(
        &self,
        run: u64,
        start: &Start,
        progress: Option<ProgressSink>,
    ) -> Result<oneshot::Receiver<RunResult>, Box<RunResult>> {
        let failed = |failure| Err(Box::new(RunResult::Reported(Completion::Error(failure))));
        let (sender, ended) = oneshot::channel();
        let full = self.lanes.is_full();
        let mut state = self.lock();
        if let Some(refusal) = self.refusal(&state) {
            return Err(Box::new(match refusal {
                NoAnswer::NeverAsked(failure) => RunResult::NeverBegun(failure),
                gone => RunResult::Lost(gone.into_failure()),
            }));
        }
        if state.runs.contains_key(&run) {
            let text = format!("run id {run} is already in use by a run that has not ended");
            return failed(Failure::new(FailureKind::InternalError, text));
        }
        if full || state.runs.len() >= self.limits.max_queued {
            return failed(self.busy());
        }
        if start.call.stop_epoch < state.stop_epoch {
            self.unasked.counters().add(|counts| &mut counts.stale_starts);
            return Err(Box::new(RunResult::Cancelled));
        }
        state.newest = state.newest.max(run);
        if moves(start.action.effect) {
            state.moving.insert(run);
        }
        let entry = Run {
            ended: sender,
            progress,
        };
        state.runs.insert(run, entry);
        Ok(ended)
    }

    /// Forgets a run whose start could not be sent.
    pub(crate) fn unsent(&self, run: u64) {
        self.lock().moving.remove(&run);
        self.forget(run);
    }

    /// Forgets a run for which no caller waits any longer.
    pub(crate) fn forget(&self, run: u64) {
        let forgotten = self.lock().runs.remove(&run);
        // Dropped outside the lock, because the caller's progress sink may do anything in its drop.
        drop(forgotten);
    }

    /// Why the toolbox cannot be asked.
    fn refusal(&self, state: &State) -> Option<NoAnswer> {
        let gone = state.gone.as_ref().map(|gone| gone.why.clone());
        gone.or_else(|| state.closed.map(|_| self.is_closed()))
    }

    pub(super) fn is_closed(&self) -> NoAnswer {
        let id = &self.origin.toolbox_id;
        NoAnswer::Closed(Failure::new(
            FailureKind::ToolboxClosed,
            format!("toolbox `{id}` is closed"),
        ))
    }

    fn busy(&self) -> Failure {
        let id = &self.origin.toolbox_id;
        let text = format!("toolbox `{id}` has too many calls waiting for it; try again later");
        Failure::new(FailureKind::BusyError, text)
    }

    /// Why an expected answer does not arrive.
    pub(crate) fn closed_reason(&self) -> NoAnswer {
        let gone = self.lock().gone.as_ref().map(|gone| gone.why.clone());
        gone.unwrap_or_else(|| self.is_closed())
    }

    /// Resolves when the toolbox has ended; to a `Death` if its process ended without being asked to.
    pub(crate) fn died(&self) -> BoxFuture<'static, Option<Death>> {
        let mut end = self.end.subscribe();
        async move {
            match end.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(End::Died(death))) => Some(death.clone()),
                _ => None,
            }
        }
        .boxed()
    }

    pub(crate) fn begin_close(&self) {
        {
            let mut state = self.lock();
            if state.closing.is_some() || state.gone.is_some() {
                return;
            }
            state.closing = Some(Instant::now());
        }
        self.lanes.close(self.next_id());
    }
}
