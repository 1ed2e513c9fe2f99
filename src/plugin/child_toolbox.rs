//! A toolbox that runs in a process of its own.
//!
//! Turns what the engine and the manager ask into frames, and the child's frames into answers; a [`Keeper`] watches over
//! the process. Everything is sent at once from the thread that asks, so a halt waits for nothing. Read [`ChildToolbox`].

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use ovos_toolbox_wire::{Action, Completion, Conclusion, Effect, Failure, Manifest, Object, Report, Start};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::core::Core;
use super::counts::Counts;
use super::frame::{Functions, HaltOrder, Opening, Order, Word};
use super::hosted::{Death, Hosted};
use super::in_process::Open;
use super::keeper::{Keeper, Keeping};
use super::outlet::{Bell, Outlet};
use super::services::{HostServices, Origin, Request};
use super::spawner::{self, Program};
use super::tools::{self, ToolSet};
use crate::engine::{Ended, Halt, ProgressSink, RunId, Toolbox, never_begun};

/// Lines of a process that are told when it dies.
const LAST_LINES: usize = 5;

/// What a toolbox's process is made of.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// The program that is run as `toolbox-host`.
    pub program: PathBuf,
    /// The file it loads; should be a staged copy that nobody else writes.
    pub file: PathBuf,
    /// Added to the allowed part of the service's environment.
    pub env: BTreeMap<String, String>,
    /// Memory it may use, in MiB; none: as much as there is.
    pub memory_mb: Option<u64>,
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
    shared: Arc<Shared>,
}

/// What the toolbox's threads in the service share.
pub(super) struct Shared {
    pub(super) core: Arc<Core>,
    pub(super) data: Outlet,
    pub(super) control: Outlet,
    pub(super) bell: Arc<Bell>,
    /// The keeper looks after time limits.
    pub(super) armed: AtomicBool,
    /// It was stopped in an emergency and has not agreed to a resume since.
    stopped: AtomicBool,
    pub(super) end: watch::Sender<Option<End>>,
    /// What it drives is at rest, as far as that could be had: set a while after the end.
    pub(super) rested: watch::Sender<bool>,
    state: Mutex<State>,
    ids: AtomicU64,
    pid: u32,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// As it was asked to; whether in time.
    Closed(bool),
    Died(Death),
}

#[derive(Default)]
struct State {
    /// Known once it is open.
    functions: Option<Functions>,
    greeted: bool,
    hello: Option<oneshot::Sender<()>>,
    opened: Option<oneshot::Sender<Result<Functions, Failure>>>,
    asks: HashMap<u64, oneshot::Sender<Result<String, Failure>>>,
    words: HashMap<u64, PendingWord>,
    /// Runs that move something and that the child has not ended, also those that nobody waits for any more.
    moving: HashSet<u64>,
    /// Bounded by the child's own limit, which is checked again here.
    requests: HashSet<u64>,
    counts: Counts,
    planless: Without,
    conclusionless: Without,
    lines: VecDeque<String>,
    /// Why its process is to be ended.
    given_up: Option<String>,
    closing: Option<Instant>,
    /// The child's last word, and when it came.
    closed: Option<(bool, Instant)>,
    /// Why there is nobody to ask any more.
    gone: Option<Failure>,
}

/// Names of tools that need not be asked for a plan or a conclusion of their own.
#[derive(Default)]
struct Without {
    names: HashSet<String>,
    /// Of the tool list. An answer from before it changed must not outlive the change.
    version: u64,
}

impl Without {
    fn forget(&mut self) {
        self.names.clear();
        self.version += 1;
    }

    fn note(&mut self, tool: String, version: u64) {
        if self.version == version {
            self.names.insert(tool);
        }
    }
}

struct PendingWord {
    reply: oneshot::Sender<Result<(), Failure>>,
    /// Only a halt has a limit.
    halted: Option<Instant>,
}

/// What the keeper needs to know about what is under way.
#[derive(Debug)]
pub(super) struct Outlook {
    /// Somebody waits for the child, or something moves.
    pub(super) busy: bool,
    /// The oldest halt without an answer.
    pub(super) halted: Option<Instant>,
    pub(super) given_up: Option<String>,
    pub(super) closing: Option<Instant>,
    pub(super) closed: Option<(bool, Instant)>,
    pub(super) functions: Option<Functions>,
}

impl std::fmt::Debug for ChildToolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildToolbox")
            .field("origin", &self.shared.core.origin)
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
            generation,
            config: config.clone(),
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
        };
        let sockets = Sockets::new().map_err(|e| trouble(&e))?;
        let mut command = program.command("--serve", &process.file);
        command
            .stdin(Stdio::from(OwnedFd::from(sockets.their_data)))
            .stdout(Stdio::from(OwnedFd::from(sockets.their_control)))
            .stderr(Stdio::piped());
        let (tell, told) = oneshot::channel();
        // A process that nobody waits for any more sees its sockets close, and ends.
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
        let shared = Arc::new(Shared {
            core,
            data: Outlet::new(ours(&sockets.data).map_err(|e| trouble(&e))?, bell.clone()),
            control: Outlet::new(ours(&sockets.control).map_err(|e| trouble(&e))?, bell.clone()),
            bell,
            armed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            end: watch::Sender::new(None),
            rested: watch::Sender::new(false),
            state: Mutex::default(),
            ids: AtomicU64::new(1),
            pid: child.id(),
        });
        // From here on dropping it ends the process.
        let toolbox = Self {
            shared: shared.clone(),
        };
        let keeping = Keeping {
            program,
            file: process.file,
            config,
            memory_mb: process.memory_mb,
        };
        Keeper::start(shared.clone(), child, sockets.data, sockets.control, keeping)
            .map_err(|e| trouble(&e))?;
        match toolbox.greet_and_open(&opening, process.hello, limit).await {
            Ok(()) => Ok(toolbox),
            Err(failure) => {
                shared.begin_close();
                // Its device is free again, and its hardware at rest, when whoever asked hears of it.
                let mut rested = shared.rested.subscribe();
                _ = rested.wait_for(|rested| *rested).await;
                Err(failure)
            }
        }
    }

    async fn greet_and_open(
        &self,
        opening: &Opening,
        hello: Duration,
        limit: Duration,
    ) -> Result<(), Failure> {
        let shared = &self.shared;
        let (said_hello, is_open) = {
            let mut state = shared.lock();
            let (told, said_hello) = oneshot::channel();
            let (opened, is_open) = oneshot::channel();
            if let Some(failure) = state.gone.clone() {
                return Err(failure);
            }
            state.opened = Some(opened);
            if !state.greeted {
                state.hello = Some(told);
            }
            (said_hello, is_open)
        };
        match tokio::time::timeout(hello, said_hello).await {
            // Dropped: it was greeted before anybody waited, or it is gone.
            Ok(_) if shared.lock().greeted => {}
            Ok(_) => return Err(shared.gone_failure()),
            Err(_) => return Err(self.give_up("did not say hello", hello)),
        }
        shared.data.send(&Order::Open(opening.clone()).frame().encode());
        // Whether it lives is not asked here: the dynamic linker may take a processor for a while.
        // The child keeps the limit too and knows more about what happened, so it has a moment more.
        match tokio::time::timeout(limit + Duration::from_millis(500), is_open).await {
            Ok(Ok(opened)) => {
                shared.lock().functions = Some(opened?);
                Ok(())
            }
            Ok(Err(_)) => Err(shared.gone_failure()),
            Err(_) => Err(self.give_up("did not return from open()", limit)),
        }
    }

    /// Has the keeper end a process that does not do what it is there for.
    fn give_up(&self, what: &str, limit: Duration) -> Failure {
        let id = &self.shared.core.origin.toolbox_id;
        let text = format!("its process {what} within {} s", limit.as_secs_f64());
        self.shared.lock().given_up = Some(text.clone());
        self.shared.bell.ring();
        Failure::new("TimeoutError", format!("toolbox `{id}`: {text}"))
    }

    /// Sends a question; the future brings the answer.
    fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        order: impl FnOnce(u64) -> Order,
    ) -> BoxFuture<'static, Result<T, Failure>> {
        let (reply, answer) = oneshot::channel();
        let ask = self.shared.next_id();
        {
            let mut state = self.shared.lock();
            if let Some(failure) = state.refusal(&self.shared.core.origin) {
                return ready(Err(failure)).boxed();
            }
            if state.asks.len() >= self.shared.core.limits.max_queued {
                return ready(Err(self.shared.busy())).boxed();
            }
            state.asks.insert(ask, reply);
        }
        self.shared.data.send(&order(ask).frame().encode());
        self.shared.arm();
        let shared = self.shared.clone();
        async move {
            let json = answer.await.unwrap_or_else(|_| Err(shared.gone_failure()))?;
            serde_json::from_str(&json).map_err(|e| {
                Failure::new(
                    "ToolboxError",
                    format!("the answer of its process cannot be read: {e}"),
                )
            })
        }
        .boxed()
    }

    /// As [`ChildToolbox::ask`], within `limits.open`.
    async fn ask_in_time<T: DeserializeOwned + Send + 'static>(
        &self,
        what: &str,
        order: impl FnOnce(u64) -> Order,
    ) -> Result<T, Failure> {
        let limit = self.shared.core.limits.open;
        match tokio::time::timeout(limit, self.ask(order)).await {
            Ok(answer) => answer,
            Err(_) => {
                let id = &self.shared.core.origin.toolbox_id;
                let text = format!(
                    "{what} of toolbox `{id}` did not return within {} s",
                    limit.as_secs_f64()
                );
                Err(Failure::new("TimeoutError", text))
            }
        }
    }

    /// Sends an order whose word comes on the control socket.
    fn command(
        &self,
        is_halt: bool,
        order: impl FnOnce(u64) -> Order,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        let (reply, word) = oneshot::channel();
        let id = self.shared.next_id();
        {
            let mut state = self.shared.lock();
            if let Some(failure) = state.refusal(&self.shared.core.origin) {
                return ready(Err(failure)).boxed();
            }
            let halted = is_halt.then(Instant::now);
            state.words.insert(id, PendingWord { reply, halted });
        }
        self.shared.control.send(&order(id).frame().encode());
        self.shared.arm();
        let shared = self.shared.clone();
        async move { word.await.unwrap_or_else(|_| Err(shared.gone_failure())) }.boxed()
    }
}

impl Drop for ChildToolbox {
    fn drop(&mut self) {
        self.shared.begin_close();
    }
}

impl Hosted for ChildToolbox {
    fn origin(&self) -> &Origin {
        &self.shared.core.origin
    }

    fn manifest(&self) -> &Arc<Manifest> {
        &self.shared.core.manifest
    }

    fn counts(&self) -> Counts {
        self.shared.core.counters.read() + self.shared.lock().counts
    }

    fn pid(&self) -> Option<u32> {
        Some(self.shared.pid)
    }

    fn open_runs(&self) -> usize {
        self.shared.core.runs.open()
    }

    fn stop_epoch(&self) -> u64 {
        self.shared.core.runs.stop_epoch()
    }

    fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    fn raise_stop_epoch(&self, to: u64) {
        self.shared.core.runs.raise_stop_epoch(to);
        self.shared.control.send(&Order::Epoch(to).frame().encode());
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolSet, Failure>> {
        async move {
            {
                let mut state = self.shared.lock();
                state.planless.forget();
                state.conclusionless.forget();
            }
            let list: String = self.ask_in_time("tools()", |ask| Order::Tools { ask }).await?;
            tools::read(&list)
        }
        .boxed()
    }

    fn may_close(&self) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            let answer = self
                .ask_in_time("may_close()", |ask| Order::MayClose { ask })
                .await;
            match answer {
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
        let core = &self.shared.core;
        if !self.shared.has(|f| f.message) || !core.manifest.subscribes.iter().any(|t| t == topic) {
            return;
        }
        let order = Order::Message {
            topic: topic.to_owned(),
            json: data.to_owned(),
        };
        if !self.shared.data.chatter(&order.frame().encode()) {
            core.counters.dropped_messages.add();
        }
    }

    fn respond(&self, request: u64, answer: &Result<Value, Failure>) -> bool {
        let asked = self.shared.lock().requests.remove(&request);
        if asked {
            let answer = answer.clone();
            self.shared
                .data
                .send(&Order::Response { request, answer }.frame().encode());
        }
        asked
    }

    fn close(&self) -> BoxFuture<'_, bool> {
        // Begun also when nobody polls the future.
        self.shared.begin_close();
        let (mut end, mut rested) = (self.shared.end.subscribe(), self.shared.rested.subscribe());
        async move {
            let closed = match end.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(End::Closed(in_time))) => *in_time,
                _ => true,
            };
            // An error means that the keeper is gone, which is as much as can be had.
            _ = rested.wait_for(|rested| *rested).await;
            closed
        }
        .boxed()
    }

    fn died(&self) -> BoxFuture<'static, Option<Death>> {
        let mut end = self.shared.end.subscribe();
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
    ) -> BoxFuture<'a, Result<Option<Vec<Action>>, Failure>> {
        if !self.shared.has(|f| f.plan) {
            return ready(Ok(None)).boxed();
        }
        let version = {
            let state = self.shared.lock();
            if state.planless.names.contains(tool) {
                return ready(Ok(None)).boxed();
            }
            state.planless.version
        };
        let (name, args) = (tool.to_owned(), args.clone());
        let answer = self.ask(|ask| Order::Plan {
            ask,
            tool: name,
            args,
        });
        async move {
            let plan: Option<Vec<Action>> = answer.await?;
            if plan.is_none() {
                self.shared.lock().planless.note(tool.to_owned(), version);
            }
            Ok(plan)
        }
        .boxed()
    }

    fn start(&self, run: RunId, start: Start, progress: Option<ProgressSink>) -> BoxFuture<'static, Ended> {
        let core = &self.shared.core;
        let json = match serde_json::to_string(&start) {
            Ok(json) => json,
            Err(e) => {
                let failure = Failure::new("InternalError", format!("cannot be written as JSON: {e}"));
                return ready(Ended::Reported(Completion::Error(failure))).boxed();
            }
        };
        let wants_progress = progress.is_some();
        let waiting = match core.runs.register(run, start.call.stop_epoch, progress) {
            Ok(waiting) => waiting,
            Err(ended) => return ready(ended).boxed(),
        };
        if core.runs.open() > core.limits.max_queued {
            return ready(Ended::Reported(Completion::Error(self.shared.busy()))).boxed();
        }
        {
            let mut state = self.shared.lock();
            if let Some(failure) = state.refusal(&core.origin) {
                return ready(Ended::Lost(failure)).boxed();
            }
            // What must not begin any more has been ended by this.
            if !core.runs.send_off(run.0) {
                return waiting.boxed();
            }
            if matches!(start.action.effect, Effect::Motion | Effect::Safe) {
                state.moving.insert(run.0);
            }
        }
        let order = Order::Start {
            run: run.0,
            progress: wants_progress,
            json,
        };
        self.shared.data.start(&order.frame().encode());
        self.shared.arm();
        waiting.boxed()
    }

    fn cancel(&self, run: RunId) {
        if self.shared.core.runs.cancel(run.0) {
            let starts = self.shared.data.starts();
            let order = Order::Cancel { run: run.0, starts };
            self.shared.control.send(&order.frame().encode());
        }
    }

    fn conclude<'a>(
        &'a self,
        tool: &'a str,
        args: &'a Object,
        report: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        if !self.shared.has(|f| f.conclude) {
            return ready(Ok(None)).boxed();
        }
        let version = {
            let state = self.shared.lock();
            if state.conclusionless.names.contains(tool) {
                return ready(Ok(None)).boxed();
            }
            state.conclusionless.version
        };
        let (name, args, report) = (tool.to_owned(), args.clone(), Box::new(report.clone()));
        let answer = self.ask(|ask| Order::Conclude {
            ask,
            tool: name,
            args,
            report,
        });
        async move {
            let conclusion: Option<Conclusion> = answer.await?;
            if conclusion.is_none() {
                self.shared.lock().conclusionless.note(tool.to_owned(), version);
            }
            Ok(conclusion)
        }
        .boxed()
    }

    fn halt(&self, halt: Halt) -> BoxFuture<'static, Result<(), Failure>> {
        // Before the command: no older start is sent after it, and the child drops those that are on their way.
        self.shared.core.runs.halt(&halt);
        if halt.emergency {
            self.shared.stopped.store(true, Ordering::SeqCst);
        }
        let Halt {
            subsystems,
            emergency,
            stop_epoch,
        } = halt;
        let halt = HaltOrder {
            subsystems,
            emergency,
            stop_epoch,
        };
        self.command(true, |id| Order::Halt { id, halt })
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), Failure>> {
        let limit = self.shared.core.limits.open;
        let word = self.command(false, |id| Order::Resume { id });
        let shared = Arc::clone(&self.shared);
        async move {
            let late = || {
                Err(Failure::new(
                    "TimeoutError",
                    format!("resume() was not confirmed within {} ms", limit.as_millis()),
                ))
            };
            let agreed = tokio::time::timeout(limit, word).await.unwrap_or_else(|_| late());
            if agreed.is_ok() {
                shared.stopped.store(false, Ordering::SeqCst);
            }
            agreed
        }
        .boxed()
    }
}

impl State {
    /// Why nothing can be asked of it.
    fn refusal(&self, origin: &Origin) -> Option<Failure> {
        let closed = || {
            Failure::new(
                "ToolboxClosed",
                format!("toolbox `{}` is closed", origin.toolbox_id),
            )
        };
        self.gone.clone().or_else(|| self.closed.is_some().then(closed))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, which: fn(&Functions) -> bool) -> bool {
        self.lock().functions.as_ref().is_some_and(which)
    }

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn busy(&self) -> Failure {
        let Core { origin, limits, .. } = &*self.core;
        let text = format!(
            "toolbox `{}` has {} calls waiting for its process; try again later",
            origin.toolbox_id, limits.max_queued
        );
        Failure::new("BusyError", text)
    }

    fn gone_failure(&self) -> Failure {
        let gone = self.lock().gone.clone();
        gone.unwrap_or_else(|| {
            let id = &self.core.origin.toolbox_id;
            Failure::new("ToolboxClosed", format!("toolbox `{id}` is closed"))
        })
    }

    /// Has the keeper look after time limits, from now until nothing is under way any more.
    fn arm(&self) {
        if !self.armed.load(Ordering::SeqCst) && !self.armed.swap(true, Ordering::SeqCst) {
            self.bell.ring();
        }
    }

    fn begin_close(&self) {
        {
            let mut state = self.lock();
            if state.closing.is_some() || state.gone.is_some() {
                return;
            }
            state.closing = Some(Instant::now());
        }
        self.data.send(&Order::Close.frame().encode());
        self.bell.ring();
    }

    // --- for the keeper and the reader

    pub(super) fn outlook(&self) -> Outlook {
        let state = self.lock();
        let halted = state.words.values().filter_map(|word| word.halted).min();
        Outlook {
            busy: !(state.asks.is_empty() && state.words.is_empty() && state.moving.is_empty())
                || self.core.runs.open() > 0,
            halted,
            given_up: state.given_up.clone(),
            closing: state.closing,
            closed: state.closed,
            functions: state.functions,
        }
    }

    /// Whether something moves, as far as is known.
    pub(super) fn is_moving(&self) -> bool {
        !self.lock().moving.is_empty()
    }

    /// Keeps a line for the case that it is one of the last.
    pub(super) fn keep_line(&self, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            let mut state = self.lock();
            if state.lines.len() >= LAST_LINES {
                state.lines.pop_front();
            }
            // Enough to know what it was about.
            state.lines.push_back(line.chars().take(300).collect());
        }
    }

    pub(super) fn last_lines(&self) -> String {
        let lines: Vec<String> = self.lock().lines.iter().cloned().collect();
        lines.join(" | ")
    }

    /// The child answered a halt or a resume.
    pub(super) fn said(&self, id: u64, said: Result<(), Failure>) {
        let word = self.lock().words.remove(&id);
        if let Some(word) = word {
            // Nobody waits when the caller's own patience ended.
            _ = word.reply.send(said);
        }
    }

    /// Takes a word from the data socket.
    ///
    /// # Errors
    /// What it should not have said; the process cannot be used after it.
    pub(super) fn hear(&self, word: Word) -> Result<(), String> {
        let greeted = std::mem::replace(&mut self.lock().greeted, true);
        if !greeted {
            let Word::Hello(hello) = word else {
                return Err("its first word was not hello".to_owned());
            };
            if hello.abi != super::frame::PROTOCOL {
                return Err(format!(
                    "it is of another version ({}, protocol {}); restart the service",
                    hello.version, hello.abi
                ));
            }
            // Dropped, or not there yet: `greeted` says it to those who come later.
            self.lock().hello = None;
            return Ok(());
        }
        let core = &self.core;
        match word {
            Word::Opened(opened) => {
                let reply = self.lock().opened.take();
                if let Some(reply) = reply {
                    _ = reply.send(opened);
                }
            }
            Word::Answer { ask, ok, json } => {
                let reply = self.lock().asks.remove(&ask);
                let answer = if ok {
                    Ok(json)
                } else {
                    Err(serde_json::from_str(&json).unwrap_or_else(|e| {
                        Failure::new("ToolboxError", format!("its failure cannot be read: {e}"))
                    }))
                };
                if let Some(reply) = reply {
                    _ = reply.send(answer);
                }
            }
            Word::Complete { run, ended } => {
                self.lock().moving.remove(&run);
                if let Some(ending) = core.runs.take(run) {
                    ending.send(ended);
                }
            }
            Word::Progress { run, progress } => core.progressed(run, Some(progress)),
            Word::Event(event) => core.happened(event),
            Word::Request {
                request,
                topic,
                data,
                timeout_ms,
            } => self.request(request, topic, data, timeout_ms),
            Word::Log {
                level,
                target,
                message,
            } => {
                self.keep_line(&message);
                core.log(u32::from(level), &target, Ok(&message));
            }
            Word::Counts(counts) => self.lock().counts = counts,
            Word::Closed { in_time } => {
                self.lock().closed = Some((in_time, Instant::now()));
                self.bell.ring();
            }
            // Of the other socket, or of a newer child.
            _ => {}
        }
        Ok(())
    }

    fn request(&self, request: u64, topic: String, data: Value, timeout_ms: u64) {
        let core = &self.core;
        let taken = {
            let mut state = self.lock();
            state.requests.len() < core.limits.max_requests && state.requests.insert(request)
        };
        // The child has checked both; what it says is checked here nevertheless.
        if !core.manifest.requests.contains(&topic) || !taken {
            core.counters.refused_requests.add();
            let answer = Err(Failure::new("ToolboxError", "the request was refused"));
            self.lock().requests.remove(&request);
            return self
                .data
                .send(&Order::Response { request, answer }.frame().encode());
        }
        core.services.request(
            &core.origin,
            Request {
                id: request,
                topic,
                data,
                timeout: Duration::from_millis(timeout_ms),
            },
        );
    }

    /// The process is gone: everybody who waits is told why.
    pub(super) fn bury(&self, end: End) {
        let id = &self.core.origin.toolbox_id;
        let failure = match &end {
            End::Closed(true) => {
                Failure::new("ToolboxClosed", format!("toolbox `{id}` was closed while it ran"))
            }
            End::Closed(false) => Failure::new(
                "ToolboxClosed",
                format!("toolbox `{id}` did not close in time and was ended"),
            ),
            End::Died(death) => Failure::new("ToolboxCrashed", format!("toolbox `{id}`: {}", death.reason)),
        };
        let later = match &end {
            End::Closed(_) => Failure::new("ToolboxClosed", format!("toolbox `{id}` is closed")),
            End::Died(_) => never_begun(failure.clone()),
        };
        let (asks, words) = {
            let mut state = self.lock();
            state.gone = Some(later.clone());
            state.moving.clear();
            state.requests.clear();
            // Dropped: whoever opens it learns of the end by that.
            state.hello = None;
            state.opened = None;
            (std::mem::take(&mut state.asks), std::mem::take(&mut state.words))
        };
        self.end.send_replace(Some(end));
        self.core.runs.lose_and_refuse(&failure, &later);
        for (_, reply) in asks {
            _ = reply.send(Err(failure.clone()));
        }
        for (_, word) in words {
            _ = word.reply.send(Err(failure.clone()));
        }
    }
}

/// Two socketpairs; every end is closed on exec.
struct Sockets {
    data: UnixStream,
    their_data: UnixStream,
    control: UnixStream,
    their_control: UnixStream,
}

impl Sockets {
    fn new() -> std::io::Result<Self> {
        let (data, their_data) = UnixStream::pair()?;
        let (control, their_control) = UnixStream::pair()?;
        // The data socket has a thread of its own that waits in it.
        control.set_nonblocking(true)?;
        Ok(Self {
            data,
            their_data,
            control,
            their_control,
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
