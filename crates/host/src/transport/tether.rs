//! What the service's threads know of one toolbox's process: who waits for what, what moves, how it ended.
//!
//! Owns the answers: each caller is answered exactly once, by the child or by its end. Sends and reads nothing
//! by itself but refusals; `child_toolbox` asks, `keeper` watches. Read [`Tether`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Completion, Failure};
use parking_lot::{Mutex, MutexGuard};
use protocol::{Answer, Counts, Functions, Hello, Notice, Order, PROTOCOL, Raw, RunEnd};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::contract::hosted::Death;
use crate::contract::json;
use crate::contract::services::{Origin, Request};
use crate::ffi::answer;
use crate::ffi::core::Core;
use crate::ffi::without::Without;
use crate::transport::frame::{Frame, failure_of, said};
use crate::transport::outlet::{Bell, Outlet};
use engine::{Ended, Unanswered};

/// Lines of a process that are told when it dies.
const LAST_LINES: usize = 5;

/// What the toolbox's threads in the service share.
pub(crate) struct Tether {
    pub(crate) core: Arc<Core>,
    pub(crate) data: Outlet,
    pub(crate) control: Outlet,
    pub(crate) bell: Arc<Bell>,
    /// The keeper looks after time limits.
    pub(crate) armed: AtomicBool,
    /// Emergency stops since it last agreed to a resume.
    pub(crate) stopped: AtomicU64,
    pub(crate) end: watch::Sender<Option<End>>,
    /// What it drives is at rest, as far as that could be had: set a while after the end.
    pub(crate) rested: watch::Sender<bool>,
    pub(crate) state: Mutex<State>,
    /// Tools that said they have no plan, and no conclusion, of their own.
    pub(crate) planless: Without,
    pub(crate) conclusionless: Without,
    pub(crate) ids: AtomicU64,
    pub(crate) pid: u32,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// As it was asked to; whether in time.
    Closed(bool),
    Died(Death),
}

#[derive(Default)]
pub(crate) struct State {
    /// Known once it is open.
    pub(crate) functions: Option<Functions>,
    pub(crate) greeted: bool,
    pub(crate) hello: Option<oneshot::Sender<()>>,
    pub(crate) opened: Option<oneshot::Sender<Result<Functions, Failure>>>,
    pub(crate) asks: HashMap<u64, oneshot::Sender<Result<String, Failure>>>,
    pub(crate) commands: HashMap<u64, PendingCommand>,
    /// Runs that move something and that the child has not ended, also those that were given up.
    pub(crate) moving: HashSet<u64>,
    /// Bounded by the child's own limit, which is checked again here.
    pub(crate) requests: HashSet<u64>,
    pub(crate) counts: Counts,
    pub(crate) lines: VecDeque<String>,
    /// Why its process is to be ended.
    pub(crate) given_up: Option<String>,
    pub(crate) closing: Option<Instant>,
    /// Whether the child closed in time, and when it said so.
    pub(crate) closed: Option<(bool, Instant)>,
    /// Why nothing reaches it any more.
    pub(crate) gone: Option<Unanswered>,
}

pub(crate) struct PendingCommand {
    pub(crate) reply: oneshot::Sender<Result<(), Failure>>,
    /// Only a halt has a limit.
    pub(crate) halted: Option<Instant>,
}

/// What the keeper needs to know about what is under way.
#[derive(Debug)]
pub(crate) struct Outlook {
    /// A caller waits for the child, or something moves.
    pub(crate) busy: bool,
    /// The oldest halt without an answer.
    pub(crate) halted: Option<Instant>,
    pub(crate) given_up: Option<String>,
    pub(crate) closing: Option<Instant>,
    pub(crate) closed: Option<(bool, Instant)>,
    pub(crate) functions: Option<Functions>,
}

impl State {
    /// Why nothing can be asked of it.
    pub(crate) fn refusal(&self, origin: &Origin) -> Option<Unanswered> {
        let closed = || {
            let text = format!("toolbox `{}` is closed", origin.toolbox_id);
            Unanswered::Failed(Failure::new("ToolboxClosed", text))
        };
        self.gone.clone().or_else(|| self.closed.is_some().then(closed))
    }
}

impl Tether {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn has(&self, which: fn(&Functions) -> bool) -> bool {
        self.lock().functions.as_ref().is_some_and(which)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn busy(&self) -> Failure {
        let text = format!(
            "toolbox `{}` has too many calls waiting for its process; try again later",
            self.core.origin.toolbox_id
        );
        Failure::new("BusyError", text)
    }

    pub(crate) fn gone_failure(&self) -> Failure {
        let gone = self.lock().gone.clone().map(Unanswered::into_failure);
        gone.unwrap_or_else(|| {
            let id = &self.core.origin.toolbox_id;
            Failure::new("ToolboxClosed", format!("toolbox `{id}` is closed"))
        })
    }

    /// Has the keeper look after time limits, from now until nothing is under way any more.
    pub(crate) fn arm(&self) {
        if !self.armed.load(Ordering::SeqCst) && !self.armed.swap(true, Ordering::SeqCst) {
            self.bell.ring();
        }
    }

    pub(crate) fn begin_close(&self) {
        {
            let mut state = self.lock();
            if state.closing.is_some() || state.gone.is_some() {
                return;
            }
            state.closing = Some(Instant::now());
        }
        let seq = self.next_id();
        self.data.send(&Frame::of(&Order::Close { seq }));
        self.bell.ring();
    }

    // --- for the keeper and the reader

    pub(crate) fn outlook(&self) -> Outlook {
        let state = self.lock();
        let halted = state.commands.values().filter_map(|command| command.halted).min();
        Outlook {
            busy: !(state.asks.is_empty() && state.commands.is_empty() && state.moving.is_empty())
                || self.core.runs.open() > 0,
            halted,
            given_up: state.given_up.clone(),
            closing: state.closing,
            closed: state.closed,
            functions: state.functions,
        }
    }

    /// Whether something moves, as far as is known.
    pub(crate) fn is_moving(&self) -> bool {
        !self.lock().moving.is_empty()
    }

    /// Keeps a line for the case that it is one of the last.
    pub(crate) fn keep_line(&self, line: &str) {
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

    pub(crate) fn last_lines(&self) -> String {
        let lines: Vec<String> = self.lock().lines.iter().cloned().collect();
        lines.join(" | ")
    }

    /// The child answered a halt or a resume.
    pub(crate) fn commanded(&self, seq: u64, answer: Answer<()>) {
        let command = self.lock().commands.remove(&seq);
        if let Some(command) = command {
            // Not received when the caller gave up.
            _ = command.reply.send(said(answer));
        }
    }

    /// The child answered a question.
    fn answered<T>(&self, seq: u64, answer: Answer<Raw<T>>) {
        let reply = self.lock().asks.remove(&seq);
        if let Some(reply) = reply {
            _ = reply.send(said(answer).map(Raw::into_text));
        }
    }

    /// Takes a notice from the data socket.
    ///
    /// # Errors
    /// What it should not have said; the process cannot be used after it.
    pub(crate) fn hear(&self, notice: Notice) -> Result<(), String> {
        let greeted = std::mem::replace(&mut self.lock().greeted, true);
        if !greeted {
            let Notice::Hello(Hello {
                protocol, version, ..
            }) = notice
            else {
                return Err("its first word was not hello".to_owned());
            };
            if protocol != PROTOCOL {
                return Err(format!(
                    "it is of another version ({version}, protocol {protocol}); restart the service"
                ));
            }
            // Dropped, or not there yet: `greeted` says it to those who come later.
            self.lock().hello = None;
            return Ok(());
        }
        let core = &self.core;
        match notice {
            Notice::Opened { answer, .. } => {
                let reply = self.lock().opened.take();
                if let Some(reply) = reply {
                    _ = reply.send(said(answer));
                }
            }
            Notice::Tools { seq, answer } => self.answered(seq, answer),
            Notice::Planned { seq, answer } => self.answered(seq, answer),
            Notice::Concluded { seq, answer } => self.answered(seq, answer),
            Notice::Closable { seq, answer } => self.answered(seq, answer),
            Notice::Ended { run, end } => {
                self.lock().moving.remove(&run);
                if let Some(ending) = core.runs.take(run) {
                    ending.send(ended(&end));
                }
            }
            Notice::Progress { run, progress } => core.progress(run, Ok(progress.text())),
            Notice::Event(event) => core.event(Ok(event.text())),
            Notice::Request {
                request,
                topic,
                data,
                timeout_ms,
            } => self.request(request, topic, &data, timeout_ms),
            Notice::Log {
                level,
                target,
                message,
            } => {
                self.keep_line(&message);
                core.log(level, &target, Ok(&message));
            }
            Notice::Counts(counts) => self.lock().counts = counts,
            Notice::Closed { in_time, .. } => {
                self.lock().closed = Some((in_time, Instant::now()));
                self.bell.ring();
            }
            // Of the other socket, or of a newer child.
            _ => {}
        }
        Ok(())
    }

    fn request(&self, request: u64, topic: String, data: &Raw<Value>, timeout_ms: u64) {
        let core = &self.core;
        let data = json::read::<Value>(data.text()).ok().filter(Value::is_object);
        let taken = {
            let mut state = self.lock();
            state.requests.len() < core.limits.max_requests && state.requests.insert(request)
        };
        // The child has checked all of it; what it says is checked here nevertheless.
        let (Some(data), true, true) = (data, core.manifest.requests.contains(&topic), taken) else {
            core.counters.refused_requests.add();
            let answer = Err(Failure::new("ToolboxError", "the request was refused")).into();
            self.lock().requests.remove(&request);
            return self.data.send(&Frame::of(&Order::Response { request, answer }));
        };
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
    pub(crate) fn bury(&self, end: End) {
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
        let (later, later_runs) = match &end {
            End::Closed(_) => {
                let closed = Failure::new("ToolboxClosed", format!("toolbox `{id}` is closed"));
                (Unanswered::Failed(closed.clone()), Ended::Lost(closed))
            }
            End::Died(_) => (
                Unanswered::NeverAsked(failure.clone()),
                Ended::NeverBegun(failure.clone()),
            ),
        };
        let (asks, commands) = {
            let mut state = self.lock();
            state.gone = Some(later);
            state.moving.clear();
            state.requests.clear();
            // Dropping them tells the opening that the child has ended.
            state.hello = None;
            state.opened = None;
            (
                std::mem::take(&mut state.asks),
                std::mem::take(&mut state.commands),
            )
        };
        self.end.send_replace(Some(end));
        self.core.runs.lose_and_refuse(&failure, later_runs);
        for (_, reply) in asks {
            _ = reply.send(Err(failure.clone()));
        }
        for (_, command) in commands {
            _ = command.reply.send(Err(failure.clone()));
        }
    }
}

/// How a run ended, in the engine's terms. That a run never began is not the toolbox's to say.
fn ended(end: &RunEnd) -> Ended {
    match end {
        RunEnd::Output(output) => Ended::Reported(match json::read(output.text()) {
            Ok(output) => Completion::Output(output),
            Err(error) => Completion::Error(answer::unusable(&error)),
        }),
        RunEnd::Error(failure) => Ended::Reported(Completion::Error(failure_of(failure))),
        RunEnd::Cancelled => Ended::Cancelled,
        RunEnd::Lost(failure) => Ended::Lost(failure_of(failure)),
    }
}
