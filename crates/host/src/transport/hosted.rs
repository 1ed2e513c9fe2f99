//! One open copy of a toolbox, as the engine and the manager use it, wherever it runs.
//!
//! Turns calls into orders, and answers into results; enforces the time limits. A transport carries the orders, and the
//! peer assigns the answers to the callers. Read [`Hosted`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use ovos_toolbox_wire::{
    Completion, Conclusion, Failure, FailureKind, Manifest, Object, Plan, Report, Start,
};
use protocol::{Counts, Order, Raw};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::contract::answer;
use crate::contract::services::Origin;
use crate::contract::tools::{self, Maker, Motion, ToolSet};
use crate::transport::peer::{Death, End, Peer};
use crate::transport::sent_run::SentRun;
use engine::{Halt, NoAnswer, ProgressSink, RunId, RunResult, Toolbox};

/// An open toolbox. Dropping it closes it in the background.
pub struct Hosted {
    pub(super) peer: Arc<Peer>,
    pub(super) maker: Maker,
    /// The folder for the toolbox's content, named in the starts of calls that ask for content.
    pub(super) content_dir: Option<String>,
}

impl std::fmt::Debug for Hosted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosted")
            .field("origin", self.origin())
            .finish_non_exhaustive()
    }
}

impl Hosted {
    /// Sets the folder for the files that the toolbox returns as content.
    #[must_use]
    pub fn with_content_dir(mut self, folder: Option<String>) -> Self {
        self.content_dir = folder;
        self
    }

    /// Which copy of which toolbox this is.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.peer.origin
    }

    /// The toolbox's manifest.
    #[must_use]
    pub fn manifest(&self) -> &Arc<Manifest> {
        &self.peer.manifest
    }

    /// The counts of dropped messages so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.peer.unasked.counters().read() + self.peer.lock().counts
    }

    /// How long the toolbox may take to answer a halt.
    #[must_use]
    pub fn halt_limit(&self) -> Duration {
        self.peer.limits.halt
    }

    /// The id of the toolbox's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.peer.lanes.pid()
    }

    /// The number of runs that have not ended and were not given up.
    #[must_use]
    pub fn open_runs(&self) -> usize {
        self.peer.lock().runs.len()
    }

    /// The newest stop epoch that this copy knows.
    #[must_use]
    pub fn stop_epoch(&self) -> u64 {
        self.peer.lock().stop_epoch
    }

    /// Whether it was stopped in an emergency and has not agreed to a resume since.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.peer.stopped.load(Ordering::SeqCst) > 0
    }

    /// Raises the stop epoch to that of an older generation; an older epoch has no effect.
    pub fn raise_stop_epoch(&self, to: u64) {
        self.peer.raise_stop_epoch(to);
        self.peer.lanes.control(Order::Epoch { stop_epoch: to });
    }

    /// Asks for the tools. Tools that cannot be used are listed with the reason.
    ///
    /// # Errors
    /// The toolbox's own failure, or that it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// The answer is lost, nothing else.
    pub async fn tools(&self) -> Result<ToolSet, Failure> {
        self.peer.planless.forget();
        self.peer.conclusionless.forget();
        let limit = self.peer.limits.open;
        let list = timeout(limit, self.ask(|seq| Order::Tools { seq })).await;
        let list = list.map_err(|_| self.late("tools()", limit))?;
        let list = list.map_err(NoAnswer::into_failure)?;
        let motion = match (self.peer.lanes.is_alone(), self.peer.has(|f| f.halt)) {
            (false, _) => Motion::SharesProcess,
            (true, false) => Motion::HasNoHalt,
            (true, true) => Motion::Halts,
        };
        // To compile the schemas of many tools takes seconds.
        let maker = self.maker;
        let read = tokio::task::spawn_blocking(move || tools::read(&list, maker, motion)).await;
        read.unwrap_or_else(|error| {
            let text = format!("its tools were not read: {error}");
            Err(Failure::new(FailureKind::InternalError, text))
        })
    }

    /// Asks whether the toolbox may be closed now. A toolbox that does not answer within `limits.open` does not refuse.
    ///
    /// # Errors
    /// The toolbox refused; the failure is its reason.
    ///
    /// # Cancel safety
    /// The answer is lost, nothing else.
    pub async fn may_close(&self) -> Result<(), Failure> {
        let answer = self.ask(|seq| Order::MayClose { seq });
        match timeout(self.peer.limits.open, answer).await {
            Ok(Err(NoAnswer::Failed(refusal))) => Err(refusal),
            // A toolbox that does not answer, or is gone, cannot refuse.
            _ => Ok(()),
        }
    }

    /// Hands over a bus message, if the toolbox subscribes to its topic. Never waits; if there are too many, the oldest
    /// are dropped.
    pub fn message(&self, topic: &str, data: &str) {
        let peer = &self.peer;
        if !peer.has(|f| f.message) || !peer.manifest.subscribes.iter().any(|t| t == topic) {
            return;
        }
        let topic = topic.to_owned();
        let sent = Raw::from_text(data.to_owned())
            .is_ok_and(|data| peer.lanes.chatter(Order::Message { topic, data }));
        if !sent {
            peer.unasked.counters().add(|counts| &mut counts.dropped_messages);
        }
    }

    /// Hands over the answer to a request; false if this copy did not make the request, or it was answered already.
    pub fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool {
        let was_open = self.peer.lock().requests.remove(&request);
        if was_open {
            let answer = answer.as_ref().map(Raw::of).map_err(Failure::clone);
            self.peer.respond(request, answer);
        }
        was_open
    }

    /// Closes the toolbox: no new work begins, queued work is cancelled, work that is under way finishes, then `close`
    /// is called. Runs that are still open afterwards are lost. True if the toolbox closed within `limits.close`.
    /// Otherwise its process is ended; a toolbox that shares its process with others is abandoned, and can still be halted.
    ///
    /// # Cancel safety
    /// The closing goes on; calling it again waits for the same end.
    pub fn close(&self) -> BoxFuture<'_, bool> {
        // Closing begins even if the future is never polled.
        self.peer.begin_close();
        let (mut end, mut rested) = (self.peer.end.subscribe(), self.peer.rested.subscribe());
        let limit = (!self.peer.lanes.is_kept()).then_some(self.peer.limits.close);
        async move {
            let ended = async {
                match end.wait_for(Option::is_some).await.as_deref() {
                    Ok(Some(End::Closed(in_time))) => *in_time,
                    Ok(Some(End::Abandoned)) => false,
                    _ => true,
                }
            };
            let Some(closed) = within(limit, ended).await else {
                self.peer.abandon();
                return false;
            };
            if !matches!(*self.peer.end.borrow(), Some(End::Abandoned)) {
                // An error means that the keeper is gone.
                _ = rested.wait_for(|rested| *rested).await;
            }
            closed
        }
        .boxed()
    }

    /// Resolves when the toolbox has ended; to a `Death` if its process ended without being asked to.
    pub fn died(&self) -> BoxFuture<'static, Option<Death>> {
        self.peer.died()
    }

    /// The result of the opening; `None` if it does not arrive within `limit`.
    pub(super) async fn await_open(
        &self,
        is_open: oneshot::Receiver<Result<(), Failure>>,
        limit: Duration,
    ) -> Option<Result<(), Failure>> {
        let opened = timeout(limit, is_open).await.ok()?;
        Some(opened.unwrap_or_else(|_| Err(self.peer.closed_reason().into_failure())))
    }

    /// Sends a question; the future brings the answer, as JSON.
    fn ask(&self, order: impl FnOnce(u64) -> Order) -> BoxFuture<'static, Result<String, NoAnswer>> {
        let seq = self.peer.next_id();
        let answer = match self.peer.asked(seq) {
            Ok(answer) => answer,
            Err(refusal) => return ready(Err(*refusal)).boxed(),
        };
        if let Err(refusal) = self.peer.lanes.data(order(seq)) {
            self.peer.lock().asks.remove(&seq);
            return ready(Err(refusal.into())).boxed();
        }
        self.peer.lanes.wait();
        let peer = self.peer.clone();
        async move {
            match answer.await {
                Ok(reply) => reply,
                Err(_) => Err(peer.closed_reason()),
            }
        }
        .boxed()
    }

    /// The failure of a function that did not return in time.
    pub(super) fn late(&self, what: &str, limit: Duration) -> Failure {
        let id = &self.origin().toolbox_id;
        let limit = limit.as_secs_f64();
        let text = format!("{what} of toolbox `{id}` did not return within {limit} s");
        Failure::new(FailureKind::TimeoutError, text)
    }

    /// Sends an order that is answered on the control lane.
    fn command(
        &self,
        what: &'static str,
        limit: Option<Duration>,
        halted: Option<Instant>,
        order: impl FnOnce(u64) -> Order,
    ) -> BoxFuture<'static, Result<(), NoAnswer>> {
        let seq = self.peer.next_id();
        let answer = match self.peer.commanded(seq, halted) {
            Ok(answer) => answer,
            Err(refusal) => return ready(Err(*refusal)).boxed(),
        };
        self.peer.lanes.control(order(seq));
        self.peer.lanes.wait();
        let peer = self.peer.clone();
        async move {
            if let Some(answer) = within(limit, answer).await {
                return match answer {
                    Ok(reply) => reply,
                    Err(_) => Err(peer.closed_reason()),
                };
            }
            peer.lock().commands.remove(&seq);
            let id = &peer.origin.toolbox_id;
            let limit_ms = limit.unwrap_or_default().as_millis();
            let text = format!("{what} of toolbox `{id}` was not confirmed within {limit_ms} ms");
            tracing::error!(toolbox = &**id, "{text}");
            Err(Failure::new(FailureKind::TimeoutError, text).into())
        }
        .boxed()
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.peer.begin_close();
    }
}

impl Toolbox for Hosted {
    fn plan<'a>(&'a self, tool: &'a str, args: &'a Object) -> BoxFuture<'a, Result<Option<Plan>, NoAnswer>> {
        let planless = &self.peer.planless;
        let version = planless.version();
        if !self.peer.has(|f| f.plan) || planless.has(tool) {
            return ready(Ok(None)).boxed();
        }
        let answer = self.ask(|seq| Order::Plan {
            seq,
            tool: tool.to_owned(),
            args: Raw::of(args),
        });
        async move {
            let plan = answer::plan(&answer.await?)?;
            if plan.is_none() {
                planless.note(tool.to_owned(), version);
            }
            Ok(plan)
        }
        .boxed()
    }

    fn start(
        &self,
        run: RunId,
        mut start: Start,
        progress: Option<ProgressSink>,
    ) -> BoxFuture<'static, RunResult> {
        // A call that asks for no content gets no folder.
        start.call.content_dir = start.call.content_dir.and(self.content_dir.clone());
        let (peer, run, wanted) = (&self.peer, run.0, progress.is_some());
        let ended = match peer.begins(run, &start, progress) {
            Ok(ended) => ended,
            Err(ended) => return ready(*ended).boxed(),
        };
        if let Err(refusal) = peer.lanes.start(run, &start, wanted) {
            peer.unsent(run);
            return ready(RunResult::Reported(Completion::Error(refusal))).boxed();
        }
        peer.lanes.wait();
        SentRun::new(run, peer.clone()).end(ended).boxed()
    }

    fn cancel(&self, run: RunId) {
        let (run, starts) = (run.0, self.peer.lanes.starts());
        self.peer.lanes.control(Order::Cancel { run, starts });
    }

    fn conclude<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        let conclusionless = &self.peer.conclusionless;
        let version = conclusionless.version();
        if !self.peer.has(|f| f.conclude) || conclusionless.has(tool) {
            return ready(Ok(None)).boxed();
        }
        let answer = self.ask(|seq| Order::Conclude {
            seq,
            tool: tool.to_owned(),
            args: Raw::of(args),
            report: Raw::of(report),
        });
        async move {
            let answer = answer.await.map_err(NoAnswer::into_failure)?;
            let conclusion = answer::conclusion(&answer)?;
            if conclusion.is_none() {
                conclusionless.note(tool.to_owned(), version);
            }
            Ok(conclusion)
        }
        .boxed()
    }

    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), NoAnswer>> {
        let Halt {
            subsystems,
            emergency,
            stop_epoch,
        } = halt;
        if emergency {
            // Raised before the command is sent: afterwards no older start is sent, and the older starts that are on
            // their way never begin.
            self.peer.raise_stop_epoch(stop_epoch);
            self.peer.stopped.fetch_add(1, Ordering::SeqCst);
        }
        let limit = (!self.peer.lanes.is_kept()).then_some(self.peer.limits.halt);
        self.command("halt()", limit, Some(Instant::now()), |seq| Order::Halt {
            seq,
            subsystems,
            emergency,
            stop_epoch,
        })
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), NoAnswer>> {
        let peer = Arc::clone(&self.peer);
        let stops = peer.stopped.load(Ordering::SeqCst);
        // A resume is not urgent, and the toolbox may check the hardware first.
        let limit = Some(peer.limits.open);
        let answer = self.command("resume()", limit, None, |seq| Order::Resume { seq });
        async move {
            let agreed = answer.await;
            if agreed.is_ok() {
                // If another stop came meanwhile, the toolbox has not agreed to lift it, and the count stays.
                _ = peer
                    .stopped
                    .compare_exchange(stops, 0, Ordering::SeqCst, Ordering::SeqCst);
            }
            agreed
        }
        .boxed()
    }
}

/// The output of a future; `None` if it takes longer than `limit`, if there is a limit.
async fn within<T>(limit: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => timeout(limit, future).await.ok(),
        None => Some(future.await),
    }
}
