//! Turns the orders of both lanes into calls of the toolbox, and its answers into notices.
//!
//! Puts starts, and the cancels and stops that overtake them, in order. Time limits and the end of the process are the
//! owner's. Read [`Server`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use ovos_toolbox_wire::{Effect, Failure, FailureKind, Start};
use parking_lot::Mutex;
use protocol::{Answer, Functions, Notice, Opening, Order, Raw, RunEnd};
use serde::Deserialize;

use crate::link::Link;
use crate::notices::Later;
use crate::run::Run;
use crate::toolbox::{Halt, Refusal, Reply, Toolbox, answer};

/// Opens the toolbox. Called once, on the thread of the data lane, which may take its time: the control lane is served beside it.
pub(crate) type Open = Box<dyn FnOnce(Opening, Link) -> Result<Arc<dyn Toolbox>, Failure> + Send>;

/// The server of one toolbox's orders.
pub(crate) struct Server {
    link: Link,
    /// Set once, when the toolbox is opened.
    toolbox: OnceLock<Arc<dyn Toolbox>>,
    open: Mutex<Option<Open>>,
    intake: Mutex<Intake>,
    closing: AtomicBool,
}

/// Puts starts, and the cancels that overtake them, in order.
#[derive(Default)]
struct Intake {
    starts: u64,
    /// Cancels that came before their start, and how many starts were sent before them.
    early: HashMap<u64, u64>,
    /// The run that is being handed to the toolbox.
    starting: Option<Starting>,
}

/// The cancels that came while a run was handed to the toolbox.
struct Starting {
    run: u64,
    cancels: Vec<Cancel>,
}

/// How a run is asked to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cancel {
    Cancel,
    Withdraw,
}

impl Server {
    pub(crate) fn new(link: Link, open: Open) -> Self {
        Self {
            link,
            toolbox: OnceLock::new(),
            open: Mutex::new(Some(open)),
            intake: Mutex::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// Opens the toolbox, and answers the order.
    pub(crate) fn open(&self, mut opening: Opening) {
        let (seq, link) = (opening.seq, &self.link);
        let opened: Reply<Functions> = self.reply(move |answer| Notice::Opened { seq, answer });
        let open = self.open.lock().take();
        let Some(open) = open else {
            let failure = Failure::new(FailureKind::InternalError, "it is open already");
            return opened(Err(failure.into()));
        };
        // A stop may have come before the order.
        opening.stop_epoch = link.raise(opening.stop_epoch);
        match open(opening, link.clone()) {
            Ok(toolbox) => {
                // Set before any notice is sent: an order that follows such a notice has to find the toolbox.
                let toolbox = self.toolbox.get_or_init(|| toolbox);
                // A stop may have come while it was opened.
                toolbox.stopped(link.stop_epoch());
                toolbox.begin(opened);
            }
            Err(failure) => opened(Err(failure.into())),
        }
    }

    /// Closes the toolbox; false if none was opened, or it is closing already.
    pub(crate) fn close(&self, closed: impl FnOnce(bool) + Send + 'static) -> bool {
        let Some(toolbox) = self.toolbox() else {
            return false;
        };
        let first = !self.closing.swap(true, Ordering::SeqCst);
        if first {
            let link = self.link.clone();
            toolbox.close(Box::new(move |in_time| {
                link.tell_counts();
                closed(in_time);
            }));
        }
        first
    }

    pub(crate) fn toolbox(&self) -> Option<&dyn Toolbox> {
        self.toolbox.get().map(Arc::as_ref)
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.link.is_moving()
    }

    /// Halts everything, and voids the starts that are on their way.
    pub(crate) fn halt_all(&self, reply: Reply<()>) {
        let stop_epoch = self.link.stop_epoch().saturating_add(1);
        self.halt(vec!["all".to_owned()], true, stop_epoch, reply);
    }

    /// Takes an order from the data lane.
    pub(crate) fn data(&self, order: Order) {
        let request = match order {
            Order::Start { run, progress, start } => {
                self.start(run, start, progress);
                return;
            }
            Order::Message { topic, data } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.message(topic, data);
                }
                return;
            }
            Order::Response { request, answer } => {
                if let Some(toolbox) = self.toolbox() {
                    toolbox.respond(request, answer);
                }
                return;
            }
            asked => asked,
        };
        match request {
            Order::Tools { seq } => {
                let reply = self.reply(move |answer| Notice::Tools { seq, answer });
                self.ask(reply, |toolbox, reply| toolbox.tools(reply));
            }
            Order::Plan { seq, tool, args } => {
                let reply = self.reply(move |answer| Notice::Planned { seq, answer });
                self.ask(reply, |toolbox, reply| toolbox.plan(tool, args, reply));
            }
            Order::Conclude {
                seq,
                tool,
                args,
                report,
            } => {
                let reply = self.reply(move |answer| Notice::Concluded { seq, answer });
                self.ask(reply, |toolbox, reply| {
                    toolbox.conclude(tool, args, report, reply)
                });
            }
            Order::MayClose { seq } => {
                let reply = self.reply(move |answer| Notice::Closable { seq, answer });
                self.ask(reply, |toolbox, reply| toolbox.may_close(reply));
            }
            // An order for the owner, for the other lane, or of a newer service.
            _ => {}
        }
    }

    /// Takes an order from the control lane. Never waits for the data lane: what both use is locked for a few instructions,
    /// and never during a call of the toolbox.
    pub(crate) fn control(&self, order: Order) {
        let notices = self.link.notices().clone();
        match order {
            Order::Beat { seq } => notices.control(&Notice::Beat { seq }),
            Order::Cancel { run, starts } => self.cancel(run, starts, Cancel::Cancel),
            Order::GiveUp { run, starts } => self.cancel(run, starts, Cancel::Withdraw),
            Order::Halt {
                seq,
                subsystems,
                emergency,
                stop_epoch,
                ..
            } => {
                let reply: Reply<()> = Box::new(move |result| {
                    let answer = answer(result);
                    notices.control(&Notice::Halted { seq, answer });
                });
                self.halt(subsystems, emergency, stop_epoch, reply);
            }
            Order::Resume { seq } => {
                let reply: Reply<()> = Box::new(move |result| {
                    let answer = answer(result);
                    notices.control(&Notice::Resumed { seq, answer });
                });
                self.ask(reply, |toolbox, reply| toolbox.resume(reply));
            }
            Order::Epoch { stop_epoch } => {
                let newest = self.link.raise(stop_epoch);
                if let Some(toolbox) = self.toolbox() {
                    toolbox.stopped(newest);
                }
            }
            // An order for the other lane, or of a newer service.
            _ => {}
        }
    }

    fn halt(&self, subsystems: Vec<String>, emergency: bool, stop_epoch: u64, reply: Reply<()>) {
        if emergency {
            // Before the command: no start that the data lane brings from now on is older.
            self.link.raise(stop_epoch);
        }
        let halt = Halt {
            subsystems,
            emergency,
            stop_epoch,
        };
        self.ask(reply, |toolbox, reply| toolbox.halt(halt, reply));
    }

    /// Asks the toolbox, if it is open.
    fn ask<T>(&self, reply: Reply<T>, question: impl FnOnce(&dyn Toolbox, Reply<T>)) {
        match self.toolbox() {
            Some(toolbox) => question(toolbox, reply),
            None => reply(Err(Refusal::not_open())),
        }
    }

    /// What makes a notice on the data lane of an answer.
    fn reply<T: 'static>(&self, notice: impl FnOnce(Answer<T>) -> Notice + Send + 'static) -> Reply<T> {
        let link = self.link.clone();
        Box::new(move |result| link.data(&notice(answer(result))))
    }

    fn start(&self, number: u64, start: Raw<Start>, wants_progress: bool) {
        let (epoch, moves) = match serde_json::from_str::<Glance>(start.text()) {
            Ok(glance) => (Some(glance.call.stop_epoch), moves(glance.action.effect)),
            // The toolbox will report what is wrong with the start; until then it may move something.
            Err(_) => (None, true),
        };
        let cancelled = {
            let mut intake = self.intake.lock();
            intake.starts += 1;
            let starts = intake.starts;
            let cancelled = intake.early.remove(&number).is_some();
            intake.early.retain(|_, sent| *sent > starts);
            let cancelled = cancelled || self.toolbox().is_none();
            if !cancelled {
                // Before the lock is given back: a cancel from now on is for the toolbox.
                self.link.begins(number, moves);
                let cancels = Vec::new();
                intake.starting = Some(Starting { run: number, cancels });
            }
            cancelled
        };
        let stale = epoch.is_some_and(|epoch| epoch < self.link.stop_epoch());
        if stale {
            self.link.counters().add(|counts| &mut counts.stale_starts);
        }
        match self.toolbox() {
            Some(toolbox) if !cancelled && !stale => {
                let run = Run::new(number, epoch.unwrap_or(0), wants_progress, self.link.clone());
                toolbox.start(run, start);
            }
            _ => self.link.ended(number, RunEnd::Cancelled, None),
        }
        // A cancel that came meanwhile may have been too early for the toolbox to relate it to this run.
        let starting = self.intake.lock().starting.take();
        for cancel in starting.into_iter().flat_map(|starting| starting.cancels) {
            if let Some(later) = self.pass_on(number, cancel) {
                later();
            }
        }
    }

    /// Asks a run to end whose start has arrived. If the start arrives later, the run never begins.
    fn cancel(&self, run: u64, sent: u64, cancel: Cancel) {
        {
            let mut intake = self.intake.lock();
            if let Some(starting) = intake.starting.as_mut().filter(|starting| starting.run == run) {
                if !starting.cancels.contains(&cancel) {
                    starting.cancels.push(cancel);
                }
                return;
            }
            if intake.starts < sent && !self.link.is_live(run) {
                if self.toolbox().is_some() {
                    intake.early.insert(run, sent);
                }
                return;
            }
        }
        if let Some(later) = self.pass_on(run, cancel) {
            self.link.notices().aside(later);
        }
    }

    fn pass_on(&self, run: u64, cancel: Cancel) -> Option<Later> {
        let toolbox = self.toolbox()?;
        match cancel {
            Cancel::Cancel => toolbox.cancel(run),
            Cancel::Withdraw => toolbox.withdraw(run),
        }
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

/// Whether an action of this effect moves something.
#[must_use]
pub fn moves(effect: Effect) -> bool {
    matches!(effect, Effect::Motion | Effect::Safe)
}
