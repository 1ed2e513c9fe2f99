//! A toolbox that runs in a process of its own.
//!
//! Turns what the engine and the manager ask into orders, and the child's notices into answers; a [`Keeper`] watches over
//! the process. Everything is sent at once from the thread that asks, so a halt waits for nothing. Read [`ChildToolbox`].

mod sent;
mod sockets;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use ovos_toolbox_wire::{
    Action, Completion, Conclusion, Effect, Failure, Manifest, Object, Plan, Report, Start,
};
use parking_lot::Mutex;
use protocol::{Counts, MAX_DATA, Opening, Order, Raw};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use sent::Sent;
use sockets::Sockets;

use crate::artifact::file::PluginFile;
use crate::contract::hosted::{Death, Hosted};
use crate::contract::json;
use crate::contract::services::{HostServices, Origin};
use crate::contract::tools::{self, ToolSet};
use crate::ffi::core::Core;
use crate::ffi::in_process::Open;
use crate::ffi::without::Without;
use crate::process::confine::Confine;
use crate::process::spawner::{self, Program};
use crate::transport::frame::Frame;
use crate::transport::keeper::{Keeper, Keeping};
use crate::transport::outlet::{Bell, Outlet};
use crate::transport::tether::{End, PendingCommand, Tether};
use engine::{Ended, Halt, ProgressSink, RunId, Toolbox, Unanswered};

/// What a toolbox's process is made of.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// The program that is run as `toolbox-host`.
    pub program: PathBuf,
    /// The file it loads; should be a staged copy that nothing else writes. Kept until its hardware is at rest.
    pub file: Arc<PluginFile>,
    /// Added to the allowed part of the service's environment.
    pub env: BTreeMap<String, String>,
    /// Memory it may use, in MiB; none: as much as there is.
    pub memory_mb: Option<u64>,
    /// What it may reach; none: everything that the service may.
    pub confine: Option<Confine>,
    /// How long the process may take until it says hello.
    pub hello: Duration,
}

/// An open toolbox in a process of its own.
///
/// ```text
///  engine ── start, plan, conclude ──> data socket ────> main thread ──> InProcess ──> toolbox
///         ── cancel, halt, resume ───> control socket ─> control thread ─^
///  engine, service <── Core <── reader thread <───────── data socket
///                     Keeper thread: heartbeats, limits, stderr, the end of the process, safe_stop
/// ```
///
/// Dropping it closes the toolbox in the background.
pub struct ChildToolbox {
    tether: Arc<Tether>,
}

impl std::fmt::Debug for ChildToolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildToolbox")
            .field("origin", &self.tether.core.origin)
            .finish_non_exhaustive()
    }
}

impl ChildToolbox {
    /// Starts a process and opens the toolbox in it.
    ///
    /// # Errors
    /// The process cannot be started or dies; what the toolbox said; or that it took longer than `limits.open`.
    ///
    /// # Cancel safety
    /// The process closes its toolbox and ends.
    pub async fn open(
        process: ProcessSettings,
        manifest: Arc<Manifest>,
        open: Open,
        services: Arc<dyn HostServices>,
    ) -> Result<Self, Failure> {
        let id = manifest.id.clone();
        let trouble = |error: &dyn std::fmt::Display| {
            Failure::new(
                "ToolboxError",
                format!("start a process for toolbox `{id}`: {error}"),
            )
        };
        let Open {
            generation,
            config,
            stop_epoch,
            limits,
        } = open;
        let opening = Opening {
            seq: 0,
            generation,
            config: Raw::from_text(config.clone()).map_err(|e| trouble(&e))?,
            stop_epoch,
            max_result_bytes: limits.max_result_bytes,
            max_queued: limits.max_queued,
            max_messages: limits.max_messages,
            max_requests: limits.max_requests,
            open_ms: millis(limits.open),
            close_ms: millis(limits.close),
            silence_ms: millis(limits.silence),
        };
        let program = Program {
            path: process.program.clone().into(),
            env: process.env.clone(),
            confine: process.confine.clone(),
        };
        let sockets = Sockets::new().map_err(|e| trouble(&e))?;
        let mut command = program.command("--serve", process.file.path());
        command
            .stdin(Stdio::from(OwnedFd::from(sockets.their_data)))
            .stdout(Stdio::from(OwnedFd::from(sockets.their_control)))
            .stderr(Stdio::piped());
        let (tell, told) = oneshot::channel();
        // If this future is dropped, the sockets close and the process ends by itself.
        spawner::spawn(command, move |spawned| drop(tell.send(spawned)));
        let child = told.await.map_err(|e| trouble(&e))?.map_err(|e| trouble(&e))?;

        let origin = Origin {
            toolbox_id: id.as_str().into(),
            generation,
        };
        let limit = limits.open;
        let core = Core::new(origin, manifest, limits, stop_epoch, services);
        let bell = Bell::new().map_err(|e| trouble(&e))?;
        let ours = |stream: &UnixStream| stream.try_clone();
        let tether = Arc::new(Tether {
            core,
            data: Outlet::new(ours(&sockets.data).map_err(|e| trouble(&e))?, bell.clone()),
            control: Outlet::new(ours(&sockets.control).map_err(|e| trouble(&e))?, bell.clone()),
            bell,
            armed: AtomicBool::new(false),
            stopped: AtomicU64::new(0),
            end: watch::Sender::new(None),
            rested: watch::Sender::new(false),
            state: Mutex::default(),
            planless: Without::default(),
            conclusionless: Without::default(),
            ids: AtomicU64::new(1),
            pid: child.id(),
        });
        // From here on dropping it ends the process.
        let toolbox = Self {
            tether: tether.clone(),
        };
        let keeping = Keeping {
            program,
            file: process.file,
            config,
            memory_mb: process.memory_mb,
        };
        Keeper::start(tether.clone(), child, sockets.data, sockets.control, keeping)
            .map_err(|e| trouble(&e))?;
        match toolbox.greet_and_open(opening, process.hello, limit).await {
            Ok(()) => Ok(toolbox),
            Err(failure) => {
                tether.begin_close();
                // The caller learns of the failure only when the device is free and the hardware at rest.
                let mut rested = tether.rested.subscribe();
                _ = rested.wait_for(|rested| *rested).await;
                Err(failure)
            }
        }
    }

    async fn greet_and_open(
        &self,
        opening: Opening,
        hello: Duration,
        limit: Duration,
    ) -> Result<(), Failure> {
        let tether = &self.tether;
        let (said_hello, is_open) = {
            let mut state = tether.lock();
            let (told, said_hello) = oneshot::channel();
            let (opened, is_open) = oneshot::channel();
            if let Some(gone) = state.gone.clone() {
                return Err(gone.into_failure());
            }
            state.opened = Some(opened);
            if !state.greeted {
                state.hello = Some(told);
            }
            (said_hello, is_open)
        };
        match tokio::time::timeout(hello, said_hello).await {
            // The sender was dropped: the hello came before this wait, or the process is gone.
            Ok(_) if tether.lock().greeted => {}
            Ok(_) => return Err(tether.gone_failure()),
            Err(_) => return Err(self.give_up("did not say hello", hello)),
        }
        tether.data.send(&Frame::of(&Order::Open(opening)));
        // Whether it lives is not asked here: the dynamic linker may take a processor for a while.
        // The child keeps the limit too and knows more about what happened, so it has a moment more.
        match tokio::time::timeout(limit + Duration::from_millis(500), is_open).await {
            Ok(Ok(opened)) => {
                tether.lock().functions = Some(opened?);
                Ok(())
            }
            Ok(Err(_)) => Err(tether.gone_failure()),
            Err(_) => Err(self.give_up("did not return from open()", limit)),
        }
    }

    /// Has the keeper end a process that does not do what it is there for.
    fn give_up(&self, what: &str, limit: Duration) -> Failure {
        let id = &self.tether.core.origin.toolbox_id;
        let text = format!("its process {what} within {} s", limit.as_secs_f64());
        self.tether.lock().given_up = Some(text.clone());
        self.tether.bell.ring();
        Failure::new("TimeoutError", format!("toolbox `{id}`: {text}"))
    }

    /// Sends a question; the future brings the answer, as JSON.
    fn ask(&self, order: impl FnOnce(u64) -> Order) -> BoxFuture<'static, Result<String, Unanswered>> {
        let (reply, answer) = oneshot::channel();
        let seq = self.tether.next_id();
        let frame = Frame::of(&order(seq));
        if frame.is_too_long() {
            return ready(Err(self.too_long(&frame).into())).boxed();
        }
        {
            let mut state = self.tether.lock();
            if let Some(refusal) = state.refusal(&self.tether.core.origin) {
                return ready(Err(refusal)).boxed();
            }
            if state.asks.len() >= self.tether.core.limits.max_queued || self.tether.data.is_full() {
                return ready(Err(self.tether.busy().into())).boxed();
            }
            state.asks.insert(seq, reply);
        }
        self.tether.data.send(&frame);
        self.tether.arm();
        let tether = self.tether.clone();
        async move {
            answer
                .await
                .unwrap_or_else(|_| Err(tether.gone_failure()))
                .map_err(Unanswered::from)
        }
        .boxed()
    }

    /// Reads an answer.
    fn read<T: DeserializeOwned>(answer: &str) -> Result<T, Failure> {
        json::read(answer).map_err(|error| {
            let text = format!("the answer of its process cannot be read: {error}");
            Failure::new("ToolboxError", text)
        })
    }

    /// Refused here: the child would take it for nonsense, and end with everything that it does.
    fn too_long(&self, frame: &Frame) -> Failure {
        let id = &self.tether.core.origin.toolbox_id;
        let text = format!(
            "toolbox `{id}` would have to be sent {} bytes at once, and a process of its own is sent at most {MAX_DATA}; \
             let its actions return less, or run it with `\"isolation\": \"in_process\"`",
            frame.length()
        );
        Failure::new("RuntimeError", text)
    }

    /// As [`ChildToolbox::ask`], within `limits.open`.
    async fn ask_in_time(&self, what: &str, order: impl FnOnce(u64) -> Order) -> Result<String, Failure> {
        let limit = self.tether.core.limits.open;
        match tokio::time::timeout(limit, self.ask(order)).await {
            Ok(answer) => answer.map_err(Unanswered::into_failure),
            Err(_) => {
                let id = &self.tether.core.origin.toolbox_id;
                let text = format!(
                    "{what} of toolbox `{id}` did not return within {} s",
                    limit.as_secs_f64()
                );
                Err(Failure::new("TimeoutError", text))
            }
        }
    }

    /// Sends an order that is answered on the control socket.
    fn command(
        &self,
        is_halt: bool,
        order: impl FnOnce(u64) -> Order,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let (reply, answer) = oneshot::channel();
        let id = self.tether.next_id();
        {
            let mut state = self.tether.lock();
            if let Some(refusal) = state.refusal(&self.tether.core.origin) {
                return ready(Err(refusal.into_failure())).boxed();
            }
            let halted = is_halt.then(Instant::now);
            state.commands.insert(id, PendingCommand { reply, halted });
        }
        self.tether.control.send(&Frame::of(&order(id)));
        self.tether.arm();
        let tether = self.tether.clone();
        async move { answer.await.unwrap_or_else(|_| Err(tether.gone_failure())) }.boxed()
    }
}

impl Drop for ChildToolbox {
    fn drop(&mut self) {
        self.tether.begin_close();
    }
}

impl Hosted for ChildToolbox {
    fn origin(&self) -> &Origin {
        &self.tether.core.origin
    }

    fn manifest(&self) -> &Arc<Manifest> {
        &self.tether.core.manifest
    }

    fn counts(&self) -> Counts {
        self.tether.core.counters.read() + self.tether.lock().counts
    }

    fn pid(&self) -> Option<u32> {
        Some(self.tether.pid)
    }

    fn open_runs(&self) -> usize {
        self.tether.core.runs.open()
    }

    fn stop_epoch(&self) -> u64 {
        self.tether.core.runs.stop_epoch()
    }

    fn is_stopped(&self) -> bool {
        self.tether.stopped.load(Ordering::SeqCst) > 0
    }

    fn raise_stop_epoch(&self, to: u64) {
        self.tether.core.runs.raise_stop_epoch(to);
        let order = Order::Epoch { stop_epoch: to };
        self.tether.control.send(&Frame::of(&order));
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolSet, Failure>> {
        async move {
            self.tether.planless.forget();
            self.tether.conclusionless.forget();
            let list = self.ask_in_time("tools()", |seq| Order::Tools { seq }).await?;
            tools::read(&list, self.tether.has(|f| f.halt))
        }
        .boxed()
    }

    fn may_close(&self) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            let answer = self
                .ask_in_time("may_close()", |seq| Order::MayClose { seq })
                .await;
            match answer.map(drop) {
                // One that does not answer, or is gone, has no say.
                Err(failure)
                    if matches!(
                        failure.kind.as_str(),
                        "TimeoutError" | "ToolboxCrashed" | "ToolboxClosed"
                    ) =>
                {
                    Ok(())
                }
                answer => answer,
            }
        }
        .boxed()
    }

    fn message(&self, topic: &str, data: &str) {
        let core = &self.tether.core;
        if !self.tether.has(|f| f.message) || !core.manifest.subscribes.iter().any(|t| t == topic) {
            return;
        }
        let frame = Raw::from_text(data.to_owned()).map(|data| {
            let topic = topic.to_owned();
            Frame::of(&Order::Message { topic, data })
        });
        let sent = frame.is_ok_and(|frame| !frame.is_too_long() && self.tether.data.chatter(&frame));
        if !sent {
            core.counters.dropped_messages.add();
        }
    }

    fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool {
        let asked = self.tether.lock().requests.remove(&request);
        if asked {
            let order = |answer: Result<Raw<Value>, Failure>| {
                let answer = answer.into();
                Frame::of(&Order::Response { request, answer })
            };
            let mut frame = order(answer.as_ref().map(Raw::of).map_err(Failure::clone));
            if frame.is_too_long() {
                frame = order(Err(self.too_long(&frame)));
            }
            self.tether.data.send(&frame);
        }
        asked
    }

    fn close(&self) -> BoxFuture<'_, bool> {
        // Begins even if the future is never polled.
        self.tether.begin_close();
        let (mut end, mut rested) = (self.tether.end.subscribe(), self.tether.rested.subscribe());
        async move {
            let closed = match end.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(End::Closed(in_time))) => *in_time,
                _ => true,
            };
            // An error means that the keeper is gone, best effort.
            _ = rested.wait_for(|rested| *rested).await;
            closed
        }
        .boxed()
    }

    fn died(&self) -> BoxFuture<'static, Option<Death>> {
        let mut end = self.tether.end.subscribe();
        async move {
            match end.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(End::Died(death))) => Some(death.clone()),
                _ => None,
            }
        }
        .boxed()
    }
}

impl Toolbox for ChildToolbox {
    fn plan<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
    ) -> BoxFuture<'a, Result<Option<Vec<Action>>, Unanswered>> {
        if !self.tether.has(|f| f.plan) {
            return ready(Ok(None)).boxed();
        }
        let planless = &self.tether.planless;
        let version = planless.version();
        if planless.has(tool) {
            return ready(Ok(None)).boxed();
        }
        let answer = self.ask(|seq| Order::Plan {
            seq,
            tool: tool.to_owned(),
            args: Raw::of(args),
        });
        async move {
            let plan: Option<Plan> = Self::read(&answer.await?)?;
            if plan.is_none() {
                planless.note(tool.to_owned(), version);
            }
            Ok(plan.map(|plan| plan.actions))
        }
        .boxed()
    }

    fn start(&self, run: RunId, start: Start, progress: Option<ProgressSink>) -> BoxFuture<'static, Ended> {
        let core = &self.tether.core;
        let frame = Frame::of(&Order::Start {
            run: run.0,
            progress: progress.is_some(),
            start: Raw::of(&start),
        });
        if frame.is_too_long() {
            return ready(Ended::Reported(Completion::Error(self.too_long(&frame)))).boxed();
        }
        let waiting = match core.runs.register(run, start.call.stop_epoch, progress) {
            Ok(waiting) => waiting,
            Err(ended) => return ready(*ended).boxed(),
        };
        if core.runs.open() > core.limits.max_queued || self.tether.data.is_full() {
            return ready(Ended::Reported(Completion::Error(self.tether.busy()))).boxed();
        }
        {
            let mut state = self.tether.lock();
            if let Some(refusal) = state.refusal(&core.origin) {
                let ended = match refusal {
                    Unanswered::Failed(failure) => Ended::Lost(failure),
                    Unanswered::NeverAsked(failure) => Ended::NeverBegun(failure),
                };
                return ready(ended).boxed();
            }
            // What must not begin any more has been ended by this.
            if !core.runs.send_off(run.0) {
                return waiting.boxed();
            }
            if matches!(start.action.effect, Effect::Motion | Effect::Safe) {
                state.moving.insert(run.0);
            }
        }
        self.tether.data.start(&frame);
        self.tether.arm();
        let tether = self.tether.clone();
        Sent {
            run: run.0,
            waiting,
            tether,
        }
        .boxed()
    }

    fn cancel(&self, run: RunId) {
        if self.tether.core.runs.cancel(run.0) {
            let starts = self.tether.data.starts();
            let order = Order::Cancel { run: run.0, starts };
            self.tether.control.send(&Frame::of(&order));
        }
    }

    fn conclude<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        if !self.tether.has(|f| f.conclude) {
            return ready(Ok(None)).boxed();
        }
        let conclusionless = &self.tether.conclusionless;
        let version = conclusionless.version();
        if conclusionless.has(tool) {
            return ready(Ok(None)).boxed();
        }
        let answer = self.ask(|seq| Order::Conclude {
            seq,
            tool: tool.to_owned(),
            args: Raw::of(args),
            report: Raw::of(report),
        });
        async move {
            let answer = answer.await.map_err(Unanswered::into_failure)?;
            let conclusion: Option<Conclusion> = Self::read(&answer)?;
            if conclusion.is_none() {
                conclusionless.note(tool.to_owned(), version);
            }
            Ok(conclusion)
        }
        .boxed()
    }

    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), Failure>> {
        // Before the command: no older start is sent after it, and the child drops those that are on their way.
        self.tether.core.runs.halt(&halt);
        if halt.emergency {
            self.tether.stopped.fetch_add(1, Ordering::SeqCst);
        }
        let Halt {
            subsystems,
            emergency,
            stop_epoch,
        } = halt;
        self.command(true, |seq| Order::Halt {
            seq,
            subsystems,
            emergency,
            stop_epoch,
        })
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), Failure>> {
        let limit = self.tether.core.limits.open;
        let tether = Arc::clone(&self.tether);
        let stops = tether.stopped.load(Ordering::SeqCst);
        let answer = self.command(false, |seq| Order::Resume { seq });
        async move {
            let late = || {
                Err(Failure::new(
                    "TimeoutError",
                    format!("resume() was not confirmed within {} ms", limit.as_millis()),
                ))
            };
            let agreed = tokio::time::timeout(limit, answer)
                .await
                .unwrap_or_else(|_| late());
            if agreed.is_ok() {
                // A stop that came meanwhile is newer than what the toolbox agreed to.
                _ = tether
                    .stopped
                    .compare_exchange(stops, 0, Ordering::SeqCst, Ordering::SeqCst);
            }
            agreed
        }
        .boxed()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
