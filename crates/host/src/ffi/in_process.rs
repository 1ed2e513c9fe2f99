//! A toolbox that runs in this process.
//!
//! Owns the two threads of an instance: the host thread makes the serialised calls one at a time, the control thread
//! cancels, halts and resumes beside it. Knows nothing of reloads or the registry, so the same type serves inside
//! `ovos-tools toolbox-host`. Read [`InProcess`] first.

mod host_thread;

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, TryFutureExt};
use ovos_toolbox_wire::{Action, Completion, Conclusion, Failure, Manifest, Object, Report, Start};
use protocol::{Counts, RunEnd};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use host_thread::HostThread;

use crate::contract::hosted::{Death, Hosted};
use crate::contract::services::{HostServices, Limits, Origin};
use crate::contract::tools::{self, ToolSet};
use crate::ffi::control::{Confirmation, Control};
use crate::ffi::core::Core;
use crate::ffi::host_queue::{Job, Refused};
use crate::ffi::load::Library;
use crate::ffi::runs::Reply;
use crate::ffi::table::Instance;
use crate::ffi::watchdog::{Calling, Meter};
use crate::ffi::without::Without;
use engine::{Ended, Halt, ProgressSink, RunId, Toolbox, Unanswered};

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
///  engine ── plan, start, conclude ──> host queue ──> host thread ──> toolbox (one call at a time)
///         ── cancel, halt, resume ───> control  ────> control thread ──> toolbox (beside the host thread)
///  toolbox ── complete, progress, event, log ──> Core ──> engine, service
/// ```
///
/// Dropping it closes the toolbox in the background.
pub struct InProcess {
    core: Arc<Core>,
    control: Arc<Control>,
    library: Arc<Library>,
    /// Tools that said they have no plan, and no conclusion, of their own.
    planless: Arc<Without>,
    conclusionless: Arc<Without>,
    closed: watch::Receiver<bool>,
    meter: Arc<Meter>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess")
            .field("origin", &self.core.origin)
            .finish_non_exhaustive()
    }
}

impl InProcess {
    /// Opens an instance.
    ///
    /// # Errors
    /// What the toolbox said, or that it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// When the future is dropped, the instance is closed as soon as it is open.
    pub async fn open(
        library: Arc<Library>,
        open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        let Open {
            generation,
            config,
            stop_epoch,
            limits,
        } = open;
        let manifest = Arc::clone(library.manifest());
        let id = manifest.id.clone();
        let limit = limits.open;
        let origin = Origin {
            toolbox_id: id.as_str().into(),
            generation,
        };
        let control = Control::new(Meter::new(&id, generation, limits.halt));
        let core = Core::new(origin, manifest, limits, stop_epoch, services);
        let (opened, is_open) = oneshot::channel();
        let (closing, closed) = watch::channel(false);
        let meter = Meter::new(&id, generation, SLOW_CALL);
        let host = HostThread {
            core: Arc::clone(&core),
            control: Arc::clone(&control),
            library: Arc::clone(&library),
            meter: Arc::clone(&meter),
            closed: closing,
            running: Cell::new(false),
        };
        thread::Builder::new()
            .name(format!("tb-{id}"))
            .spawn(move || host.run(&config, opened))
            .map_err(|e| Failure::new("ToolboxError", format!("no thread for toolbox `{id}`: {e}")))?;
        match tokio::time::timeout(limit, is_open).await {
            Ok(Ok(Ok(()))) => Ok(Self {
                core,
                control,
                library,
                planless: Arc::default(),
                conclusionless: Arc::default(),
                closed,
                meter,
            }),
            Ok(Ok(Err(failure))) => Err(failure),
            Ok(Err(_)) => Err(Failure::new(
                "ToolboxError",
                format!("toolbox `{id}` ended while it was opened"),
            )),
            Err(_) => Err(Failure::new(
                "TimeoutError",
                format!(
                    "open() of toolbox `{id}` did not return within {} s",
                    limit.as_secs_f64()
                ),
            )),
        }
    }

    /// Which copy of which toolbox this is.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.core.origin
    }

    /// What the toolbox says about itself.
    #[must_use]
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.core.manifest
    }

    /// What was dropped so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.counters.read()
    }

    /// Runs that have not ended and were not given up.
    #[must_use]
    pub fn open_runs(&self) -> usize {
        self.core.runs.open()
    }

    /// The newest emergency stop it knows of.
    #[must_use]
    pub fn stop_epoch(&self) -> u64 {
        self.core.runs.stop_epoch()
    }

    /// Whether it was stopped in an emergency and has not agreed to a resume since.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.control.is_stopped()
    }

    /// Whether one of its functions is being called.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.meter.is_inside()
    }

    /// The function that it has not returned from within `limits.open`, though it should at once: everything else that is
    /// asked of it waits behind that.
    #[must_use]
    pub fn overdue(&self) -> Option<&'static str> {
        self.meter.overdue(self.core.limits.open)
    }

    /// Makes an older generation's stop known to this one. Never goes back.
    pub fn raise_stop_epoch(&self, to: u64) {
        self.core.runs.raise_stop_epoch(to);
    }

    /// Asks for the tools; those that cannot be used are listed with the reason.
    ///
    /// # Errors
    /// What the toolbox said, or that it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// The answer is lost, nothing else.
    pub async fn tools(&self) -> Result<ToolSet, Failure> {
        tools::read(&self.tool_list().await?, self.library.table.has_halt())
    }

    /// The tools as the toolbox lists them.
    pub(crate) async fn tool_list(&self) -> Result<String, Failure> {
        let limit = self.core.limits.max_result_bytes;
        let (planless, conclusionless) = (self.planless.clone(), self.conclusionless.clone());
        let question = move |toolbox: &Instance| {
            planless.forget();
            conclusionless.forget();
            toolbox.tools(limit)
        };
        self.ask_in_time("tools()", Calling::Tools, question).await
    }

    /// As [`Toolbox::plan`], with the arguments as JSON. The toolbox is asked in any case.
    pub(crate) fn plan_text(
        &self,
        tool: String,
        args: String,
    ) -> BoxFuture<'static, Result<Option<Vec<Action>>, Failure>> {
        let (planless, limit) = (self.planless.clone(), self.core.limits.max_result_bytes);
        let version = planless.version();
        self.ask(Calling::Plan, move |toolbox| {
            let plan = toolbox.plan(&tool, &args, limit)?;
            if plan.is_none() {
                planless.note(tool, version);
            }
            Ok(plan)
        })
    }

    /// As [`Toolbox::conclude`], with the arguments and the report as JSON. The toolbox is asked in any case.
    pub(crate) fn conclude_text(
        &self,
        tool: String,
        args: String,
        report: String,
    ) -> BoxFuture<'static, Result<Option<Conclusion>, Failure>> {
        let (conclusionless, limit) = (self.conclusionless.clone(), self.core.limits.max_result_bytes);
        let version = conclusionless.version();
        self.ask(Calling::Conclude, move |toolbox| {
            let conclusion = toolbox.conclude(&tool, &args, &report, limit)?;
            if conclusion.is_none() {
                conclusionless.note(tool, version);
            }
            Ok(conclusion)
        })
    }

    /// Starts an action. `tell` runs on the thread that ends it, so such a run is never given up by dropping a future.
    pub(crate) fn start_for(
        &self,
        run: RunId,
        epoch: u64,
        json: String,
        progress: Option<ProgressSink>,
        tell: Box<dyn FnOnce(RunEnd) + Send>,
    ) {
        if !self
            .core
            .runs
            .register_for(run, epoch, progress, Reply::Sink(tell))
        {
            return;
        }
        if let Err(refused) = self.core.queue.push(Job::Start { run: run.0, json }) {
            let ended = match refused {
                Refused::Closed => Ended::Lost(self.closed_failure()),
                Refused::Full => Ended::Reported(Completion::Error(self.refusal(refused))),
            };
            self.core.runs.end_queued(run.0, ended);
        }
    }

    /// Gives a run up: if it has not begun, it never does.
    pub(crate) fn give_up(&self, run: RunId) {
        self.core.runs.withdraw(run.0);
    }

    /// Asks whether it may be closed now. A toolbox that does not answer within `limits.open` has no say.
    ///
    /// # Errors
    /// Why not, in the toolbox's words.
    ///
    /// # Cancel safety
    /// The answer is lost, nothing else.
    pub async fn may_close(&self) -> Result<(), Failure> {
        let limit = self.core.limits.open;
        let answer = self.ask(Calling::MayClose, |toolbox| Ok(toolbox.may_close()));
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(word)) => word,
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Hands over a bus message, if the toolbox subscribes to its topic. Never waits; the newest messages win.
    pub fn message(&self, topic: &str, data: &str) {
        if self.library.table.has_message() && self.core.manifest.subscribes.iter().any(|t| t == topic) {
            self.core
                .queue
                .push_message(topic.to_owned(), data.to_owned(), &self.core.counters);
        }
    }

    /// Hands over the answer to a request; false when it is not this instance's or was answered already.
    pub fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool {
        self.core.respond(request, answer)
    }

    /// As [`InProcess::respond`], with the data, or the failure, as JSON.
    pub(crate) fn respond_text(&self, request: u64, answer: Result<String, String>) -> bool {
        self.core.respond_text(request, answer)
    }

    /// Closes the toolbox: no new work, what is queued is cancelled, what is under way finishes, then `close`. Runs
    /// that are still open afterwards are lost. True when the toolbox closed within `limits.close`; otherwise it is
    /// abandoned: its threads stay, and a halt is still tried.
    ///
    /// # Cancel safety
    /// The closing goes on; calling it again waits for the same end.
    pub async fn close(&self) -> bool {
        self.begin_close();
        let mut closed = self.closed.clone();
        let limit = self.core.limits.close;
        // An error means that the thread is gone, which is as closed as it gets.
        let in_time = tokio::time::timeout(limit, closed.wait_for(|closed| *closed))
            .await
            .is_ok();
        if !in_time {
            let Origin {
                toolbox_id,
                generation,
            } = &self.core.origin;
            tracing::error!(
                toolbox = &**toolbox_id,
                generation,
                limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
                "the toolbox does not close; it is abandoned and stays in memory until the service restarts"
            );
            self.core.runs.lose(&Failure::new(
                "ToolboxClosed",
                "the toolbox did not close in time and was abandoned",
            ));
        }
        in_time
    }

    fn begin_close(&self) {
        self.core.queue.close();
        self.core.runs.cancel_queued();
    }

    /// Asks the host thread, within `limits.open`.
    async fn ask_in_time<T: Send + 'static>(
        &self,
        what: &'static str,
        calling: Calling,
        question: impl FnOnce(&Instance) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let limit = self.core.limits.open;
        let answer = tokio::time::timeout(limit, self.ask(calling, question)).await;
        answer.unwrap_or_else(|_| {
            let id = &self.core.origin.toolbox_id;
            let text = format!(
                "{what} of toolbox `{id}` did not return within {} s",
                limit.as_secs_f64()
            );
            Err(Failure::new("TimeoutError", text))
        })
    }

    /// Asks the host thread. The question is on its way when this returns.
    fn ask<T: Send + 'static>(
        &self,
        calling: Calling,
        question: impl FnOnce(&Instance) -> Result<T, Failure> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Failure>> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Ask {
            calling,
            question: Box::new(move |instance| {
                // The toolbox is not asked when the caller has given up.
                if !reply.is_closed() {
                    let _ = reply.send(question(instance));
                }
            }),
        };
        if let Err(refused) = self.core.queue.push(job) {
            return ready(Err(self.refusal(refused))).boxed();
        }
        let closed = self.closed_failure();
        async move { answer.await.unwrap_or(Err(closed)) }.boxed()
    }

    /// Waits for the confirmation of a halt or resume.
    async fn confirmed(
        confirmation: Confirmation,
        what: &'static str,
        limit: Duration,
        id: Arc<str>,
    ) -> Result<(), Failure> {
        match tokio::time::timeout(limit, confirmation).await {
            Ok(Ok(said)) => said,
            Ok(Err(_)) => Err(Failure::new("ToolboxClosed", format!("toolbox `{id}` is closed"))),
            Err(_) => {
                let text = format!(
                    "{what} of toolbox `{id}` was not confirmed within {} ms",
                    limit.as_millis()
                );
                tracing::error!(toolbox = &*id, "{text}");
                Err(Failure::new("TimeoutError", text))
            }
        }
    }

    fn refusal(&self, refused: Refused) -> Failure {
        match refused {
            Refused::Closed => self.closed_failure(),
            Refused::Full => {
                let Core { origin, limits, .. } = &*self.core;
                let text = format!(
                    "toolbox `{}` has {} calls waiting for its thread; try again later",
                    origin.toolbox_id, limits.max_queued
                );
                Failure::new("BusyError", text)
            }
        }
    }

    fn closed_failure(&self) -> Failure {
        Failure::new(
            "ToolboxClosed",
            format!("toolbox `{}` is closed", self.core.origin.toolbox_id),
        )
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.begin_close();
    }
}

impl Hosted for InProcess {
    fn origin(&self) -> &Origin {
        self.origin()
    }

    fn manifest(&self) -> &Arc<Manifest> {
        self.manifest()
    }

    fn counts(&self) -> Counts {
        self.counts()
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn open_runs(&self) -> usize {
        self.open_runs()
    }

    fn stop_epoch(&self) -> u64 {
        self.stop_epoch()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped()
    }

    fn raise_stop_epoch(&self, to: u64) {
        self.raise_stop_epoch(to);
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolSet, Failure>> {
        self.tools().boxed()
    }

    fn may_close(&self) -> BoxFuture<'_, Result<(), Failure>> {
        self.may_close().boxed()
    }

    fn message(&self, topic: &str, data: &str) {
        self.message(topic, data);
    }

    fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool {
        self.respond(request, answer)
    }

    fn close(&self) -> BoxFuture<'_, bool> {
        self.close().boxed()
    }

    fn died(&self) -> BoxFuture<'static, Option<Death>> {
        std::future::pending().boxed()
    }
}

impl Toolbox for InProcess {
    fn plan<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
    ) -> BoxFuture<'a, Result<Option<Vec<Action>>, Unanswered>> {
        if !self.library.table.has_plan() || self.planless.has(tool) {
            return ready(Ok(None)).boxed();
        }
        let args = match to_json(args) {
            Ok(args) => args,
            Err(failure) => return ready(Err(failure.into())).boxed(),
        };
        let plan = self.plan_text(tool.to_owned(), args);
        plan.map_err(Unanswered::from).boxed()
    }

    fn start(&self, run: RunId, start: Start, progress: Option<ProgressSink>) -> BoxFuture<'static, Ended> {
        let json = match to_json(&start) {
            Ok(json) => json,
            Err(failure) => return ready(Ended::Reported(Completion::Error(failure))).boxed(),
        };
        let waiting = match self.core.runs.register(run, start.call.stop_epoch, progress) {
            Ok(waiting) => waiting,
            Err(ended) => return ready(*ended).boxed(),
        };
        match self.core.queue.push(Job::Start { run: run.0, json }) {
            Ok(()) => waiting.boxed(),
            Err(Refused::Closed) => ready(Ended::Lost(self.closed_failure())).boxed(),
            Err(refused) => ready(Ended::Reported(Completion::Error(self.refusal(refused)))).boxed(),
        }
    }

    fn cancel(&self, run: RunId) {
        if self.core.runs.cancel(run.0) {
            self.control.cancel(run.0);
        }
    }

    fn conclude<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        if !self.library.table.has_conclude() || self.conclusionless.has(tool) {
            return ready(Ok(None)).boxed();
        }
        let (args, report) = match (to_json(args), to_json(report)) {
            (Ok(args), Ok(report)) => (args, report),
            (Err(failure), _) | (_, Err(failure)) => return ready(Err(failure)).boxed(),
        };
        self.conclude_text(tool.to_owned(), args, report)
    }

    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), Failure>> {
        // Before the command: a start that is about to begin sees the new epoch or is followed by the halt again.
        self.core.runs.halt(&halt);
        // A list of strings is always JSON; should that ever fail, everything is halted.
        let subsystems = to_json(&halt.subsystems).unwrap_or_else(|_| r#"["all"]"#.to_owned());
        let confirmation = self.control.halt(subsystems, halt.emergency);
        let id = Arc::clone(&self.core.origin.toolbox_id);
        Self::confirmed(confirmation, "halt()", self.core.limits.halt, id).boxed()
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), Failure>> {
        let confirmation = self.control.resume();
        let id = Arc::clone(&self.core.origin.toolbox_id);
        // Not urgent, and may look at the hardware first.
        Self::confirmed(confirmation, "resume()", self.core.limits.open, id).boxed()
    }
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|e| Failure::new("InternalError", format!("cannot be written as JSON: {e}")))
}
