//! Serves the orders of one toolbox: turns orders from both lanes into calls of the toolbox, and turns what the toolbox
//! reports into notices.
//!
//! Puts starts and the cancels that overtake them in order, and knows what moves. The transport of orders and notices,
//! and every time limit, are its owner's. Read [`Server`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ovos_toolbox_wire::{Effect, Event, Failure, FailureKind, Progress, Start};
use parking_lot::Mutex;
use protocol::{Answer, Counts, Notice, Order, Raw, RunEnd};
use serde::Deserialize;

use crate::contract::counts::Counters;
use crate::contract::services::{HostServices, Origin, Request};
use crate::ffi::answer;
use crate::ffi::control::Reply;
use crate::ffi::host_thread::{HostThread, Opened};
use crate::ffi::load::Library;
use crate::ffi::plugin::{Open, Plugin};
use crate::ffi::runs::{Shown, Tell};
use crate::ffi::table::Instance;
use crate::ffi::watchdog::Calling;
use engine::{Halt, NoAnswer};

/// Receives notices. Every method is called from any thread and returns at once.
pub(crate) trait Notices: Send + Sync + 'static {
    /// Sends a notice on the data lane.
    fn data(&self, notice: Notice);

    /// As [`Notices::data`], for a notice that may be lost.
    fn chatter(&self, notice: Notice) {
        self.data(notice);
    }

    /// Sends a notice on the control lane.
    fn control(&self, notice: Notice);

    /// Runs work that sends on the data lane, for the thread that serves the control lane and must not send there
    /// itself.
    fn aside(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    /// An action that moves something is about to begin: [`Server::is_moving`] will be true in a moment.
    fn will_move(&self) {}

    /// [`Server::is_moving`] has become true.
    fn moves(&self) {}
}

/// The server of one toolbox's orders.
pub(crate) struct Server {
    voice: Arc<Voice>,
    /// Set once, when the toolbox is opened.
    plugin: OnceLock<Arc<Plugin>>,
    intake: Mutex<Intake>,
}

/// Puts starts, and the cancels that overtake them, in order.
#[derive(Default)]
struct Intake {
    starts: u64,
    /// Cancels that came before their start, and how many starts were sent before them.
    early: HashMap<u64, u64>,
}

impl Server {
    pub(crate) fn new(notices: Arc<dyn Notices>) -> Self {
        let voice = Arc::new(Voice {
            notices,
            counters: Arc::default(),
            live: Mutex::default(),
            moving: AtomicUsize::new(0),
            told: Mutex::default(),
        });
        Self {
            voice,
            plugin: OnceLock::new(),
            intake: Mutex::default(),
        }
    }

    /// Opens the toolbox. `opened` gets the result; `closed` is called when the toolbox is closed, or did not open.
    ///
    /// # Errors
    /// The thread cannot be started, or the toolbox was opened before.
    pub(crate) fn open(
        &self,
        library: Arc<Library>,
        open: Open,
        opened: Opened,
        closed: impl FnOnce() + Send + 'static,
    ) -> Result<(), Failure> {
        let voice = self.voice.clone();
        let closed = Box::new(move || {
            voice.tell_counts();
            closed();
        });
        let (manifest, counters) = (library.manifest().clone(), self.voice.counters.clone());
        let plugin = Plugin::new(manifest, &open, counters, self.voice.clone());
        let host = HostThread::new(plugin.clone(), library, open.config, closed);
        // Set before any notice is sent: an order that follows such a notice has to find the plugin.
        let taken = self.plugin.set(plugin);
        taken.map_err(|_| Failure::new(FailureKind::InternalError, "it is open already"))?;
        host.spawn(opened)
    }

    /// Closes the toolbox: no new work begins, queued work is cancelled, the work that is under way finishes, then
    /// `close` is called. False if no toolbox was opened.
    pub(crate) fn close(&self) -> bool {
        let plugin = self.plugin();
        plugin.inspect(|plugin| plugin.begin_close()).is_some()
    }

    pub(crate) fn plugin(&self) -> Option<&Plugin> {
        self.plugin.get().map(Arc::as_ref)
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.voice.moving.load(Ordering::SeqCst) > 0
    }

    /// Takes an order from the data lane. Never waits for the toolbox.
    pub(crate) fn data(&self, order: Order) {
        match order {
            Order::Start { run, progress, start } => {
                let (epoch, moves) = match serde_json::from_str::<Glance>(start.text()) {
                    Ok(glance) => (glance.call.stop_epoch, moves(glance.action.effect)),
                    // The toolbox will report what is wrong with the start; until then it may move something.
                    Err(_) => (0, true),
                };
                self.start(run, epoch, moves, start, progress);
            }
            Order::Message { topic, data } => {
                if let Some(plugin) = self.plugin() {
                    let counters = &plugin.unasked.counters;
                    plugin.queue.push_message(topic, data.into_text(), counters);
                }
            }
            Order::Response { request, answer } => {
                if let Some(plugin) = self.plugin() {
                    plugin.respond(request, answer);
                }
            }
            Order::Tools { seq } => self.ask(Calling::Tools, Instance::tools, move |answer| Notice::Tools {
                seq,
                answer,
            }),
            Order::MayClose { seq } => self.ask(Calling::MayClose, Instance::may_close, move |answer| {
                Notice::Closable { seq, answer }
            }),
            Order::Plan { seq, tool, args } => self.ask(
                Calling::Plan,
                move |toolbox| toolbox.plan(&tool, args.text()),
                move |answer| Notice::Planned { seq, answer },
            ),
            Order::Conclude {
                seq,
                tool,
                args,
                report,
            } => self.ask(
                Calling::Conclude,
                move |toolbox| toolbox.conclude(&tool, args.text(), report.text()),
                move |answer| Notice::Concluded { seq, answer },
            ),
            // An order for the owner, for the other lane, or of a newer service.
            _ => {}
        }
    }

    /// Takes an order from the control lane. Never waits for the toolbox, nor for the data lane.
    pub(crate) fn control(&self, order: Order) {
        let notices = self.voice.notices.clone();
        match order {
            Order::Beat { seq } => notices.control(Notice::Beat { seq }),
            Order::Cancel { run, starts } => self.about(run, starts, Plugin::cancel),
            Order::GiveUp { run, starts } => self.about(run, starts, |plugin, run| plugin.runs.withdraw(run)),
            Order::Halt {
                seq,
                subsystems,
                emergency,
                stop_epoch,
                ..
            } => {
                let halt = Halt {
                    subsystems,
                    emergency,
                    stop_epoch,
                };
                let reply: Reply = Box::new(move |said| {
                    let answer = answer::answer(said);
                    notices.control(Notice::Halted { seq, answer });
                });
                match self.plugin() {
                    Some(plugin) => plugin.halt(&halt, reply),
                    None => reply(Err(not_open())),
                }
            }
            Order::Resume { seq } => {
                let reply: Reply = Box::new(move |said| {
                    let answer = answer::answer(said);
                    notices.control(Notice::Resumed { seq, answer });
                });
                match self.plugin() {
                    Some(plugin) => plugin.control.resume(reply),
                    None => reply(Err(not_open())),
                }
            }
            Order::Epoch { stop_epoch } => {
                if let Some(plugin) = self.plugin() {
                    plugin.runs.raise_stop_epoch(stop_epoch);
                }
            }
            // An order for the other lane, or of a newer service.
            _ => {}
        }
    }

    /// As [`Order::Start`], for a caller that already knows the epoch and whether the action moves something.
    pub(crate) fn start(&self, run: u64, epoch: u64, moves: bool, start: Raw<Start>, progress: bool) {
        let voice = self.voice.clone();
        let mut intake = self.intake.lock();
        intake.starts += 1;
        let starts = intake.starts;
        let cancelled = intake.early.remove(&run).is_some();
        intake.early.retain(|_, sent| *sent > starts);
        let Some(plugin) = self.plugin().filter(|_| !cancelled) else {
            drop(intake);
            let end = RunEnd::Cancelled;
            let content = None;
            return voice.notices.data(Notice::Ended { run, end, content });
        };
        voice.begins(run, moves);
        let progress: Option<engine::ProgressSink> = progress.then(|| {
            let notices = voice.notices.clone();
            Arc::new(move |progress: Progress| {
                let progress = Raw::of(&progress);
                notices.chatter(Notice::Progress { run, progress });
            }) as engine::ProgressSink
        });
        let tell = Box::new(move |end, shown| voice.ended(run, end, shown));
        plugin.start(run, epoch, start.into_text(), progress, tell);
    }

    /// Asks the toolbox a question; the answer becomes a notice.
    fn ask<T: 'static>(
        &self,
        calling: Calling,
        question: impl FnOnce(&Instance) -> Result<Raw<T>, Failure> + Send + 'static,
        notice: impl FnOnce(Answer<Raw<T>>) -> Notice + Send + 'static,
    ) {
        let voice = self.voice.clone();
        let tell = move |said: Result<Raw<T>, NoAnswer>| {
            voice.tell_counts();
            voice.notices.data(notice(answer::answer(said)));
        };
        match self.plugin() {
            Some(plugin) => plugin.ask(calling, question, tell),
            None => tell(Err(not_open())),
        }
    }

    /// Runs `act` for a run whose start has arrived. If the start arrives later, the run never begins.
    fn about(&self, run: u64, sent: u64, act: impl FnOnce(&Plugin, u64) -> Option<Tell>) {
        let Some(plugin) = self.plugin() else { return };
        let mut intake = self.intake.lock();
        if intake.starts < sent && !self.voice.live.lock().contains_key(&run) {
            intake.early.insert(run, sent);
        } else {
            drop(intake);
            if let Some(tell) = act(plugin, run) {
                let notices = &self.voice.notices;
                notices.aside(Box::new(move || tell(RunEnd::Cancelled, None)));
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// Sends what the toolbox reports to the service.
struct Voice {
    notices: Arc<dyn Notices>,
    counters: Arc<Counters>,
    /// The runs under way, each with whether it moves something.
    live: Mutex<HashMap<u64, bool>>,
    moving: AtomicUsize,
    /// The counts that were sent last.
    told: Mutex<Counts>,
}

impl Voice {
    fn begins(&self, run: u64, moves: bool) {
        self.live.lock().insert(run, moves);
        if moves {
            self.notices.will_move();
            if self.moving.fetch_add(1, Ordering::SeqCst) == 0 {
                self.notices.moves();
            }
        }
    }

    fn ended(&self, run: u64, end: RunEnd, content: Shown) {
        self.tell_counts();
        self.notices.data(Notice::Ended { run, end, content });
        if self.live.lock().remove(&run) == Some(true) {
            self.moving.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Sends the counts of dropped messages, if they changed.
    fn tell_counts(&self) {
        let now = self.counters.read();
        let mut told = self.told.lock();
        if *told != now {
            *told = now;
            self.notices.data(Notice::Counts(now));
        }
    }
}

impl HostServices for Voice {
    fn event(&self, _: &Origin, event: Event) {
        self.tell_counts();
        self.notices.data(Notice::Event(Raw::of(&event)));
    }

    fn request(&self, _: &Origin, request: Request) {
        let Request {
            id,
            topic,
            data,
            timeout,
        } = request;
        self.notices.data(Notice::Request {
            request: id,
            topic,
            data: Raw::of(&data),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }
}

/// The part of a `Start` that the server itself reads.
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

/// Whether an action moves something.
pub(crate) fn moves(effect: Effect) -> bool {
    matches!(effect, Effect::Motion | Effect::Safe)
}

fn not_open() -> NoAnswer {
    NoAnswer::Closed(Failure::new(
        FailureKind::ToolboxClosed,
        "the toolbox is not open",
    ))
}
