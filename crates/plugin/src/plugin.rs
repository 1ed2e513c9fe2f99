//! An open toolbox in this process: the state that its two threads and its callbacks share.
//!
//! The host thread makes the serialised calls one at a time, the control thread cancels, halts and resumes beside it.
//! Every method returns at once; a question is answered by a call on the thread that has the answer. Handles, as safe
//! code, the calls of a toolbox to its host table. Keeps no time limits: these are its owner's. Read [`Plugin`].

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ovos_toolbox_abi::{Status, status};
use ovos_toolbox_wire::{Failure, FailureKind, Manifest};
use parking_lot::Mutex;
use program::{Halt, Later, Link, Refusal, Reply, Run, json};
use protocol::{Answer, Opening, Raw, RunEnd};
use serde_json::Value;

use crate::answer;
use crate::bytes::{Owned, Unreadable};
use crate::control::{Control, json_of};
use crate::host_queue::{HostQueue, Job, Question, Refused};
use crate::runs::{OnEnd, Runs};
use crate::table::Instance;
use crate::watchdog::{Meter, ToolboxFunction};

/// A serialised call that takes longer is logged.
const SLOW_CALL: Duration = Duration::from_secs(1);

/// A cancel, halt or resume that takes longer is logged. The service's own limit for a halt is shorter.
const SLOW_COMMAND: Duration = Duration::from_secs(10);

/// An open toolbox in this process.
///
/// ```text
///  plan, start, conclude ──> queue ───> host thread ────> toolbox (one call at a time)
///  cancel, halt, resume ───> control ─> control thread ─> toolbox (beside the host thread)
///  toolbox ── complete, progress, event, log, request ──> Plugin
/// ```
pub(crate) struct Plugin {
    pub(crate) link: Link,
    pub(crate) opening: Opening,
    pub(crate) runs: Runs,
    pub(crate) queue: HostQueue,
    pub(crate) control: Arc<Control>,
    /// Measures the calls of the host thread.
    pub(crate) meter: Arc<Meter>,
    manifest: Arc<Manifest>,
    requests: Mutex<HashSet<u64>>,
}

impl Plugin {
    /// A toolbox that a host thread opens later.
    pub(crate) fn new(manifest: Arc<Manifest>, opening: Opening, link: Link) -> Arc<Self> {
        let (id, generation) = (&manifest.id, opening.generation);
        Arc::new(Self {
            runs: Runs::new(opening.stop_epoch, link.counters().clone()),
            queue: HostQueue::new(opening.max_queued, opening.max_messages),
            control: Control::new(Meter::new(id, generation, SLOW_COMMAND)),
            meter: Meter::new(id, generation, SLOW_CALL),
            requests: Mutex::default(),
            link,
            opening,
            manifest,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.manifest.id
    }

    /// The function from which the toolbox has not returned within `open_ms`, although it should return at once: everything else
    /// that is asked of the toolbox waits for it.
    pub(crate) fn overdue(&self) -> Option<&'static str> {
        self.meter.overdue(Duration::from_millis(self.opening.open_ms))
    }

    /// Starts an action; `json` is its `Start`.
    pub(crate) fn start(&self, run: Run, json: String) {
        let (number, epoch, steps) = (run.number(), run.stop_epoch(), run.progress());
        let on_end = Box::new(move |end, shown| run.end(end, shown));
        if !self.runs.register(number, epoch, steps, on_end) {
            return;
        }
        let run = number;
        if let Err((refused, _)) = self.queue.push(Job::Start { run, json }) {
            let end = match self.refusal(refused) {
                Refusal::Failed(failure) => RunEnd::Error(Raw::of(&failure)),
                Refusal::Closed(failure) => RunEnd::Lost(Raw::of(&failure)),
            };
            self.runs.end_queued(run, end);
        }
    }

    /// Asks a run to end. A run that has not begun never begins; then the result reports its end.
    pub(crate) fn cancel(&self, run: u64) -> Option<Later> {
        let queued = self.runs.cancel(run);
        if queued.is_none() {
            self.control.cancel(run);
        }
        queued.map(ends_cancelled)
    }

    /// As [`Plugin::cancel`], for a run that goes on if it has begun.
    pub(crate) fn withdraw(&self, run: u64) -> Option<Later> {
        self.runs.withdraw(run).map(ends_cancelled)
    }

    /// Sends a halt; it is on its way when this returns.
    pub(crate) fn halt(&self, halt: &Halt, reply: Reply<()>) {
        // Before the command: a start that is about to begin sees the new epoch or is followed by the halt again.
        self.runs.halt(halt);
        self.control
            .halt(json_of(&halt.subsystems), halt.emergency, reply);
    }

    /// Asks the toolbox on the host thread. `reply` gets the answer, once, even if the toolbox is not asked.
    pub(crate) fn ask<T>(
        &self,
        calling: ToolboxFunction,
        question: impl FnOnce(&Instance) -> Result<T, Failure> + Send + 'static,
        reply: impl FnOnce(Result<T, Refusal>) + Send + 'static,
    ) {
        let question: Question = Box::new(move |instance| {
            reply(match instance {
                Ok(instance) => question(instance).map_err(Refusal::from),
                Err(refusal) => Err(refusal),
            });
        });
        if let Err((refused, Job::Ask { question, .. })) = self.queue.push(Job::Ask { calling, question }) {
            question(Err(self.refusal(refused)));
        }
    }

    /// Takes no new work and cancels the queued work. The work that is under way finishes, then the toolbox is closed.
    pub(crate) fn begin_close(&self) {
        for job in self.queue.close() {
            // A queued start is ended below, as a run.
            if let Job::Ask { question, .. } = job {
                question(Err(self.refusal(Refused::Closed)));
            }
        }
        self.runs.cancel_queued();
    }

    /// Why a job was not queued.
    fn refusal(&self, refused: Refused) -> Refusal {
        let id = self.id();
        match refused {
            Refused::Closed => {
                let text = format!("toolbox `{id}` is closed");
                Refusal::Closed(Failure::new(FailureKind::ToolboxClosed, text))
            }
            Refused::Full => {
                let text = format!(
                    "toolbox `{id}` has {} calls waiting for its thread; try again later",
                    self.opening.max_queued
                );
                Refusal::Failed(Failure::new(FailureKind::BusyError, text))
            }
        }
    }

    pub(crate) fn complete(&self, run: u64, status: Status, json: &Owned) {
        // Takes the right to end the run before it reads the result, so that a second completion finds nothing to do.
        let Some(on_end) = self.runs.take(run) else {
            tracing::debug!(
                toolbox = self.id(),
                run,
                "dropped a completion of a run that is not under way"
            );
            return;
        };
        let (end, shown) = answer::run_end(status, json.text(self.opening.max_result_bytes));
        on_end(end, shown);
    }

    pub(crate) fn progress(&self, run: u64, json: Result<&str, Unreadable>) {
        let steps = self.runs.progress(run);
        let progress = self.link.limits().progress(steps.is_some(), json);
        if let (Some(steps), Some(progress)) = (steps, progress) {
            steps.send(&progress);
        }
    }

    pub(crate) fn request(
        &self,
        topic: Result<&str, Unreadable>,
        json: Result<&str, Unreadable>,
        timeout: Duration,
    ) -> u64 {
        /// Numbers are unique in the process, so that an answer never reaches another generation's question.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let refused = || {
            self.link.counters().add(|counts| &mut counts.refused_requests);
            0
        };
        let topic = topic
            .ok()
            .filter(|t| self.manifest.requests.iter().any(|listed| listed == t));
        let data: Option<Value> = json.ok().and_then(|text| match text {
            "" => Some(Value::Object(serde_json::Map::new())),
            text => json::read(text).ok(),
        });
        let (Some(topic), Some(data)) = (topic, data.filter(Value::is_object)) else {
            self.link.limits().complain(
                "refused a request: its topic is not in the manifest's `requests`, or its data is not a JSON object",
            );
            return refused();
        };
        let id = {
            let mut requests = self.requests.lock();
            if requests.len() >= self.opening.max_requests {
                return refused();
            }
            let id = NEXT.fetch_add(1, Ordering::Relaxed);
            requests.insert(id);
            id
        };
        self.link.request(id, topic, Raw::of(&data), timeout);
        id
    }

    /// Hands over the answer to a request, unless the toolbox did not ask or was answered already.
    pub(crate) fn respond(&self, request: u64, answer: Answer<Raw<Value>>) {
        if self.requests.lock().remove(&request) {
            let (code, json) = match answer {
                Answer::Ok(data) => (status::OK, data.into_text()),
                Answer::Error(failure) | Answer::Lost(failure) => (status::ERR, failure.into_text()),
            };
            self.queue.push_response(request, code, json);
        }
    }
}

/// What reports the end of a run that never began.
fn ends_cancelled(on_end: OnEnd) -> Later {
    Box::new(move || on_end(RunEnd::Cancelled, None))
}
