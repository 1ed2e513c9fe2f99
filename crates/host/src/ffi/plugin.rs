//! An open toolbox and its two threads: the host thread makes the serialised calls one at a time, the control thread
//! cancels, halts and resumes beside it.
//!
//! Every method returns at once, and what is asked is answered by a call on the thread that knows the answer. Keeps no
//! limit of time: those are its owner's. Read [`Plugin`] first.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::Failure;
use protocol::{Answer, Raw, RunEnd};
use serde_json::Value;

use crate::contract::counts::Counters;
use crate::contract::services::{HostServices, Limits, Origin};
use crate::ffi::control::{ALL, Control, Reply};
use crate::ffi::core::Core;
use crate::ffi::host_queue::{Job, Question, Refused};
use crate::ffi::host_thread::HostThread;
use crate::ffi::load::Library;
use crate::ffi::runs::Tell;
use crate::ffi::table::Instance;
use crate::ffi::unasked::Unasked;
use crate::ffi::watchdog::{Calling, Meter};
use engine::{Halt, ProgressSink};

/// A serialised call that takes longer is logged.
const SLOW_CALL: Duration = Duration::from_secs(1);

/// How an instance is opened.
#[derive(Clone, Debug)]
pub struct Open {
    /// Which copy of the toolbox this is, counted from 1.
    pub generation: u64,
    /// The toolbox's section of the configuration: a JSON object.
    pub config: String,
    /// Starts planned under an older stop than this never begin.
    pub stop_epoch: u64,
    /// Bounds.
    pub limits: Limits,
}

/// An open toolbox in this process.
///
/// ```text
///  plan, start, conclude ──> host queue ──> host thread ────> toolbox (one call at a time)
///  cancel, halt, resume ───> control  ────> control thread ─> toolbox (beside the host thread)
///  toolbox ── complete, progress, event, log ──> Core
/// ```
///
/// Dropping it closes the toolbox in the background.
pub(crate) struct Plugin {
    core: Arc<Core>,
    control: Arc<Control>,
    meter: Arc<Meter>,
}

impl Plugin {
    /// A toolbox that is opened by the thread that comes with it. `closed` is called when that ends: after the close, or after
    /// an open that failed.
    pub(crate) fn new(
        library: Arc<Library>,
        open: Open,
        counters: Arc<Counters>,
        services: Arc<dyn HostServices>,
        closed: Box<dyn FnOnce() + Send>,
    ) -> (Self, HostThread) {
        let Open {
            generation,
            config,
            stop_epoch,
            limits,
        } = open;
        let manifest = Arc::clone(library.manifest());
        let id = manifest.id.clone();
        let origin = Origin {
            toolbox_id: id.as_str().into(),
            generation,
        };
        let plugin = Self {
            control: Control::new(Meter::new(&id, generation, limits.halt)),
            meter: Meter::new(&id, generation, SLOW_CALL),
            core: Core::new(
                Unasked::new(origin, counters, services),
                manifest,
                limits,
                stop_epoch,
            ),
        };
        let host = HostThread::new(
            plugin.core.clone(),
            plugin.control.clone(),
            plugin.meter.clone(),
            library,
            config,
            closed,
        );
        (plugin, host)
    }

    /// The newest emergency stop it knows of.
    pub(crate) fn stop_epoch(&self) -> u64 {
        self.core.runs.stop_epoch()
    }

    /// Whether one of its functions is being called.
    pub(crate) fn is_inside(&self) -> bool {
        self.meter.is_inside()
    }

    /// The function that it has not returned from within `limits.open`, though it should at once: everything else that is
    /// asked of it waits behind that.
    pub(crate) fn overdue(&self) -> Option<&'static str> {
        self.meter.overdue(self.core.limits.open)
    }

    /// Makes an older generation's stop known to this one. Never goes back.
    pub(crate) fn raise_stop_epoch(&self, to: u64) {
        self.core.runs.raise_stop_epoch(to);
    }

    /// Starts an action; `json` is its `Start`.
    pub(crate) fn start(
        &self,
        run: u64,
        epoch: u64,
        json: String,
        progress: Option<ProgressSink>,
        tell: Tell,
    ) {
        if !self.core.runs.register(run, epoch, progress, tell) {
            return;
        }
        if let Err((refused, _)) = self.core.queue.push(Job::Start { run, json }) {
            let failure = Raw::of(&self.core.refusal(refused));
            let end = match refused {
                Refused::Closed => RunEnd::Lost(failure),
                Refused::Full => RunEnd::Error(failure),
            };
            self.core.runs.end_queued(run, end);
        }
    }

    /// Asks a run to end; one that has not begun never does, and is to be told.
    pub(crate) fn cancel(&self, run: u64) -> Option<Tell> {
        let queued = self.core.runs.cancel(run);
        if queued.is_none() {
            self.control.cancel(run);
        }
        queued
    }

    /// Gives a run up: one that has not begun never does, and is to be told.
    pub(crate) fn give_up(&self, run: u64) -> Option<Tell> {
        self.core.runs.withdraw(run)
    }

    /// Sends a halt; it is on its way when this returns.
    pub(crate) fn halt(&self, halt: &Halt, reply: Reply) {
        // Before the command: a start that is about to begin sees the new epoch or is followed by the halt again.
        self.core.runs.halt(halt);
        self.control
            .halt(json_of(&halt.subsystems), halt.emergency, reply);
    }

    /// Asks whether the latch may be lifted.
    pub(crate) fn resume(&self, reply: Reply) {
        self.control.resume(reply);
    }

    /// Hands over a bus message. The newest ones win.
    pub(crate) fn message(&self, topic: String, data: String) {
        let counters = &self.core.unasked.counters;
        self.core.queue.push_message(topic, data, counters);
    }

    /// Hands over the answer to a request.
    pub(crate) fn respond(&self, request: u64, answer: Answer<Raw<Value>>) {
        self.core.respond(request, answer);
    }

    /// Asks the host thread. `tell` gets the answer, once, also when the toolbox is not asked.
    pub(crate) fn ask<T>(
        &self,
        calling: Calling,
        question: impl FnOnce(&Instance) -> Result<T, Failure> + Send + 'static,
        tell: impl FnOnce(Result<T, Failure>) + Send + 'static,
    ) {
        let question: Question = Box::new(move |instance| tell(instance.and_then(question)));
        if let Err((refused, Job::Ask { question, .. })) =
            self.core.queue.push(Job::Ask { calling, question })
        {
            question(Err(self.core.refusal(refused)));
        }
    }

    /// As [`Core::begin_close`].
    pub(crate) fn begin_close(&self) {
        self.core.begin_close();
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.begin_close();
    }
}

/// A list of strings is always JSON; should that ever fail, everything is halted.
pub(crate) fn json_of(subsystems: &[String]) -> String {
    serde_json::to_string(subsystems).unwrap_or_else(|_| ALL.to_owned())
}
