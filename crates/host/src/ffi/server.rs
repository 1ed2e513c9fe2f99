//! Serves the orders of one toolbox: what arrives on either lane becomes calls of the toolbox, and what it says notices.
//!
//! Puts starts and the cancels that overtake them in order, and tells what moves. Opening and closing, and what carries
//! orders and notices, are its owner's. Read [`Server`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::{Effect, Event, Failure, Plan, Progress, Start};
use parking_lot::Mutex;
use protocol::{Answer, Counts, Notice, Order, Raw, RunEnd};
use serde::Deserialize;
use tokio::runtime::Handle;

use crate::contract::services::{HostServices, Origin, Request};
use crate::contract::tools;
use crate::ffi::in_process::{InProcess, Open};
use crate::ffi::load::Library;
use engine::{Halt, RunId, Toolbox};

/// Where notices go. Every method is called from any thread and returns at once.
pub(crate) trait Notices: Send + Sync + 'static {
    /// Sends a notice on the data lane.
    fn data(&self, notice: &Notice);

    /// As [`Notices::data`], for what may be lost.
    fn chatter(&self, notice: &Notice);

    /// Sends a notice on the control lane.
    fn control(&self, notice: &Notice);

    /// An action that moves something is about to begin; [`Server::is_moving`] is true soon.
    fn will_move(&self);

    /// [`Server::is_moving`] has become true.
    fn moves(&self);
}

/// The server of one toolbox's orders.
pub(crate) struct Server {
    notices: Arc<dyn Notices>,
    runtime: Handle,
    /// Set once, when it is open.
    toolbox: OnceLock<Arc<InProcess>>,
    intake: Mutex<Intake>,
    /// Runs under way, and whether they move something.
    live: Mutex<HashMap<u64, bool>>,
    moving: AtomicUsize,
    /// As they were last told.
    counts: Mutex<Counts>,
}

/// Puts starts, and the cancels that overtake them, in order.
#[derive(Default)]
struct Intake {
    starts: u64,
    /// Cancels that came before their start, and how many starts were sent before them.
    early: HashMap<u64, u64>,
}

impl Server {
    pub(crate) fn new(notices: Arc<dyn Notices>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            notices,
            runtime,
            toolbox: OnceLock::new(),
            intake: Mutex::default(),
            live: Mutex::default(),
            moving: AtomicUsize::new(0),
            counts: Mutex::default(),
        })
    }

    /// Opens the toolbox.
    ///
    /// # Errors
    /// As [`InProcess::open`], or that it is open already.
    pub(crate) async fn open(self: &Arc<Self>, library: Arc<Library>, open: Open) -> Result<(), Failure> {
        let toolbox = InProcess::open(library, open, Arc::new(Uplink(self.clone()))).await?;
        let taken = self.toolbox.set(Arc::new(toolbox));
        taken.map_err(|_| Failure::new("InternalError", "it is open already"))
    }

    /// Closes the toolbox; true when that was done in time, or there is none.
    pub(crate) async fn close(&self) -> bool {
        let in_time = match self.toolbox() {
            Some(toolbox) => toolbox.close().await,
            None => true,
        };
        self.tell_counts();
        in_time
    }

    pub(crate) fn toolbox(&self) -> Option<Arc<InProcess>> {
        self.toolbox.get().cloned()
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.moving.load(Ordering::SeqCst) > 0
    }

    /// Takes an order from the data lane. Never waits for the toolbox.
    pub(crate) fn data(self: &Arc<Self>, order: Order) {
        match order {
            Order::Start { run, progress, start } => self.start(run, progress, start),
            Order::Message { topic, data } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.message(&topic, data.text());
                }
            }
            Order::Response { request, answer } => {
                if let Some(toolbox) = self.toolbox() {
                    let answer = match answer {
                        Answer::Ok(data) => Ok(data.into_text()),
                        Answer::Error(failure) => Err(failure.into_text()),
                    };
                    toolbox.respond_text(request, answer);
                }
            }
            Order::Tools { seq } => self.ask(
                |toolbox| async move {
                    let list = toolbox.tool_list().await?;
                    Raw::from_text(list).map_err(|error| tools::no_list(&error))
                },
                move |answer| Notice::Tools { seq, answer },
            ),
            Order::MayClose { seq } => self.ask(
                |toolbox| async move { toolbox.may_close().await.map(|()| Raw::of(&())) },
                move |answer| Notice::Closable { seq, answer },
            ),
            Order::Plan { seq, tool, args } => self.ask(
                |toolbox| {
                    let plan = toolbox.plan_text(tool, args.into_text());
                    async move { Ok(Raw::of(&plan.await?.map(|actions| Plan { actions }))) }
                },
                move |answer| Notice::Planned { seq, answer },
            ),
            Order::Conclude {
                seq,
                tool,
                args,
                report,
            } => self.ask(
                |toolbox| {
                    let conclusion = toolbox.conclude_text(tool, args.into_text(), report.into_text());
                    async move { Ok(Raw::of(&conclusion.await?)) }
                },
                move |answer| Notice::Concluded { seq, answer },
            ),
            // The owner's, of the other lane, or of a newer service.
            _ => {}
        }
    }

    /// Takes an order from the control lane. Never waits for the toolbox, nor for the data lane.
    pub(crate) fn control(self: &Arc<Self>, order: Order) {
        match order {
            Order::Beat { seq } => self.notices.control(&Notice::Beat { seq }),
            Order::Cancel { run, starts } => self.about(run, starts, |toolbox, run| toolbox.cancel(run)),
            Order::GiveUp { run, starts } => self.about(run, starts, InProcess::give_up),
            Order::Halt {
                seq,
                subsystems,
                emergency,
                stop_epoch,
            } => {
                let halt = Halt {
                    subsystems,
                    emergency,
                    stop_epoch,
                };
                // It is sent when this returns; another task waits for the answer.
                let halted = self.toolbox().map(|toolbox| toolbox.halt(halt));
                self.answer(halted, move |answer| Notice::Halted { seq, answer });
            }
            Order::Resume { seq } => {
                let resumed = self.toolbox().map(|toolbox| toolbox.resume());
                self.answer(resumed, move |answer| Notice::Resumed { seq, answer });
            }
            Order::Epoch { stop_epoch } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.raise_stop_epoch(stop_epoch);
                }
            }
            // Of the other lane, or of a newer service.
            _ => {}
        }
    }

    fn start(self: &Arc<Self>, run: u64, wants_progress: bool, start: Raw<Start>) {
        let (epoch, moves) = match serde_json::from_str::<Glance>(start.text()) {
            Ok(glance) => (glance.call.stop_epoch, moves(glance.action.effect)),
            // The toolbox will say what is wrong with it; until then it may move.
            Err(_) => (0, true),
        };
        let mut intake = self.intake.lock();
        intake.starts += 1;
        let starts = intake.starts;
        let cancelled = intake.early.remove(&run).is_some();
        intake.early.retain(|_, sent| *sent > starts);
        let Some(toolbox) = self.toolbox().filter(|_| !cancelled) else {
            drop(intake);
            let end = RunEnd::Cancelled;
            return self.notices.data(&Notice::Ended { run, end });
        };
        self.live.lock().insert(run, moves);
        if moves {
            self.notices.will_move();
            if self.moving.fetch_add(1, Ordering::SeqCst) == 0 {
                self.notices.moves();
            }
        }
        let progress: Option<engine::ProgressSink> = wants_progress.then(|| {
            let notices = self.notices.clone();
            Arc::new(move |progress: Progress| {
                let progress = Raw::of(&progress);
                notices.chatter(&Notice::Progress { run, progress });
            }) as engine::ProgressSink
        });
        let server = self.clone();
        let tell = Box::new(move |end| server.ended(run, end));
        toolbox.start_for(RunId(run), epoch, start.into_text(), progress, tell);
    }

    fn ended(&self, run: u64, end: RunEnd) {
        self.tell_counts();
        self.notices.data(&Notice::Ended { run, end });
        if self.live.lock().remove(&run) == Some(true) {
            self.moving.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Tells what was dropped, when that changed.
    fn tell_counts(&self) {
        let Some(toolbox) = self.toolbox() else { return };
        let now = toolbox.counts();
        let mut told = self.counts.lock();
        if *told != now {
            *told = now;
            self.notices.data(&Notice::Counts(now));
        }
    }

    /// Puts a question to the toolbox, beside what else is asked.
    fn ask<T, F>(
        self: &Arc<Self>,
        question: impl FnOnce(Arc<InProcess>) -> F,
        notice: impl FnOnce(Answer<Raw<T>>) -> Notice + Send + 'static,
    ) where
        F: Future<Output = Result<Raw<T>, Failure>> + Send + 'static,
    {
        let Some(toolbox) = self.toolbox() else {
            return self.notices.data(&notice(Err(not_open()).into()));
        };
        let (server, question) = (self.clone(), question(toolbox));
        // Owned by the runtime, which ends with the server.
        self.runtime.spawn(async move {
            let answer = question.await.into();
            server.tell_counts();
            server.notices.data(&notice(answer));
        });
    }

    /// Answers on the control lane when the toolbox has.
    fn answer(
        &self,
        said: Option<BoxFuture<'static, Result<(), Failure>>>,
        notice: impl FnOnce(Answer<()>) -> Notice + Send + 'static,
    ) {
        let Some(said) = said else {
            return self.notices.control(&notice(Err(not_open()).into()));
        };
        let notices = self.notices.clone();
        self.runtime.spawn(async move {
            let answer = said.await.into();
            notices.control(&notice(answer));
        });
    }

    /// Does something about a run, when its start has come; it never begins when it comes later.
    fn about(&self, run: u64, sent: u64, act: impl FnOnce(&InProcess, RunId)) {
        let Some(toolbox) = self.toolbox() else { return };
        let mut intake = self.intake.lock();
        if intake.starts < sent && !self.live.lock().contains_key(&run) {
            intake.early.insert(run, sent);
        } else {
            act(&toolbox, RunId(run));
        }
    }
}

/// What the toolbox says by itself.
struct Uplink(Arc<Server>);

impl HostServices for Uplink {
    fn event(&self, _: &Origin, event: Event) {
        self.0.tell_counts();
        self.0.notices.data(&Notice::Event(Raw::of(&event)));
    }

    fn request(&self, _: &Origin, request: Request) {
        let Request {
            id,
            topic,
            data,
            timeout,
        } = request;
        self.0.notices.data(&Notice::Request {
            request: id,
            topic,
            data: Raw::of(&data),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// What the server itself needs to know of a `Start`.
#[derive(Deserialize)]
struct Glance {
    call: CallGlance,
    action: ActionGlance,
}

#[derive(Deserialize)]
struct CallGlance {
    #[serde(default)]
    stop_epoch: u64,
}

#[derive(Deserialize)]
struct ActionGlance {
    effect: Effect,
}

fn moves(effect: Effect) -> bool {
    matches!(effect, Effect::Motion | Effect::Safe)
}

fn not_open() -> Failure {
    Failure::new("ToolboxClosed", "the toolbox is not open")
}
