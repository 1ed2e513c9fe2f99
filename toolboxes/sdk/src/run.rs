//! One run of one action, from the accepted start to the one completion.
//!
//! Owns the right to complete ([`Completer`]: exactly once, whatever happens to the task) and the right to command
//! ([`Run::command`]: withdrawn before `halt` reaches the toolbox). Blocks at most for one `command` closure.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use ovos_toolbox_abi::status;
use ovos_toolbox_wire::{Content, Effect, FailureKind, Progress};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;
use crate::job::Job;
use crate::{Halt, ToolError};

/// The live runs, by run id.
#[derive(Default)]
pub(crate) struct Runs {
    live: Mutex<HashMap<u64, Arc<Run>>>,
}

impl Runs {
    pub(crate) fn insert(&self, run: Arc<Run>) {
        self.live.lock().insert(run.id, run);
    }

    pub(crate) fn cancel(&self, id: u64) {
        let run = self.live.lock().get(&id).cloned();
        if let Some(run) = run {
            run.token.cancel();
        }
    }

    pub(crate) fn cancel_all(&self) {
        for run in self.matching(|_| true) {
            run.token.cancel();
        }
    }

    /// Withdraws the right to command from the motion that `halt` ends, and cancels it.
    pub(crate) fn halt(&self, halt: &Halt) {
        for run in self.matching(|run| run.is_ended_by(halt)) {
            run.disarm();
            run.token.cancel();
        }
    }

    fn matching(&self, wanted: impl Fn(&Run) -> bool) -> Vec<Arc<Run>> {
        self.live
            .lock()
            .values()
            .filter(|run| wanted(run))
            .cloned()
            .collect()
    }

    fn remove(&self, id: u64) {
        self.live.lock().remove(&id);
    }
}

/// An accepted run that has not completed yet.
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) token: CancellationToken,
    effect: Effect,
    subsystems: Vec<String>,
    /// Whether the tool watches `cancelled()`, which gives it the grace period.
    watches_cancel: AtomicBool,
    may_command: Mutex<bool>,
    live: Mutex<bool>,
    content: Mutex<Vec<Content>>,
}

impl Run {
    pub(crate) fn new(id: u64, token: CancellationToken, effect: Effect, subsystems: Vec<String>) -> Self {
        Self {
            id,
            token,
            effect,
            subsystems,
            watches_cancel: AtomicBool::new(false),
            may_command: Mutex::new(true),
            live: Mutex::new(true),
            content: Mutex::default(),
        }
    }

    /// Runs `send` unless the run was cancelled or halted; a halt waits until it has returned.
    pub(crate) fn command<R>(&self, send: impl FnOnce() -> R) -> Result<R, ToolError> {
        let may_command = self.may_command.lock();
        if !*may_command || self.token.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        Ok(send())
    }

    pub(crate) fn watch_cancel(&self) {
        self.watches_cancel.store(true, Ordering::Relaxed);
    }

    /// Reports progress, but not after the completion.
    pub(crate) fn progress(&self, gate: &Gate, progress: &Progress) {
        let live = self.live.lock();
        if *live {
            gate.progress(self.id, progress);
        }
    }

    pub(crate) fn show(&self, content: Content) {
        self.content.lock().push(content);
    }

    /// The payload of a completion with this output.
    fn done(&self, output: &str) -> String {
        let content = std::mem::take(&mut *self.content.lock());
        match serde_json::to_string(&content) {
            Ok(content) if content != "[]" => format!("{{\"output\":{output},\"content\":{content}}}"),
            _ => format!("{{\"output\":{output}}}"),
        }
    }

    fn disarm(&self) {
        *self.may_command.lock() = false;
    }

    /// A safe action continues, because it brings the machine to rest. An action without subsystems is ended only by
    /// `all`.
    fn is_ended_by(&self, halt: &Halt) -> bool {
        self.effect == Effect::Motion
            && (halt.subsystems.iter().any(|name| name == "all")
                || self.subsystems.iter().any(|name| halt.includes(name)))
    }
}

/// The obligation to complete a run. Dropping it completes the run, too.
pub(crate) struct Completer {
    pub(crate) run: Arc<Run>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) done: bool,
}

impl Completer {
    fn complete(&mut self, ended: Result<String, ToolError>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        *self.run.live.lock() = false;
        self.runs.remove(self.run.id);
        let (status, json) = match ended {
            Ok(output) => (status::OK, self.run.done(&output)),
            Err(error) => (error.status(), format!("{{\"error\":{}}}", error.json())),
        };
        self.gate.complete(self.run.id, status, json);
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        let ended = if std::thread::panicking() {
            ToolError::with_status(status::PANIC, "Panic", "the toolbox panicked")
        } else {
            ToolError::with_status(
                status::CANCELLED,
                FailureKind::CancelledError,
                "the toolbox was closed",
            )
        };
        self.complete(Err(ended));
    }
}

/// Runs a job until it completes.
pub(crate) async fn supervise(mut completer: Completer, job: Job, grace: Duration) {
    let run = Arc::clone(&completer.run);
    let ended = AssertUnwindSafe(end_of(job, run, grace)).catch_unwind().await;
    completer.complete(ended.unwrap_or_else(|payload| Err(ToolError::panic(payload))));
}

async fn end_of(mut job: Job, run: Arc<Run>, grace: Duration) -> Result<String, ToolError> {
    // Cancellation has priority: a job that is ready to continue must not take another step.
    tokio::select! {
        biased;
        () = run.token.cancelled() => {}
        ended = &mut job => return ended,
    }
    if run.watches_cancel.load(Ordering::Relaxed)
        && let Ok(ended) = tokio::time::timeout(grace, &mut job).await
    {
        return ended
            .map_err(|error| ToolError::with_status(status::CANCELLED, error.kind(), error.message()));
    }
    Err(ToolError::cancelled())
}
