//! `ovos-tools fabric mount`: one toolbox of another machine, as a program of the service.
//!
//! It speaks the protocol of docs/protocol.md with the service and asks the host over its line. `view` says what follows from what is
//! heard, `runs` and `stops` keep what is under way, `line` carries. Nothing here decides about safety: the host does. Read
//! [`run`], then [`Mount`].

mod content;
pub(crate) mod line;
mod runs;
mod stops;
mod view;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{
    Conclusion, Event, Failure, FailureKind, Manifest, Object, Plan, Report, Severity, Start, ToolList,
};
use parking_lot::Mutex;
use program::{Halt, Later, Link, Refusal, Reply, Run, Toolbox};
use protocol::{Answer, Functions, Hello, PROTOCOL, REMOTE, Raw, RunEnd};
use serde_json::json;

use crate::clock::{self, HostClock};
use crate::folder::Folder;
use crate::messages::{
    self, Ask, BEAT_MS, Beat, Pulse, ResumeDone, Right, RunWord, START_AGE_MS, StartAsk, StopDone, StopView,
    Versions,
};
use line::{Line, Way};
use runs::Runs;
use stops::{ServiceStop, Stops, tell};
use view::{News, View};

/// How long a question about a call may take; the service waits 1 s for it.
const QUESTION: Duration = Duration::from_millis(900);

/// How long an order on the control lane may take until it is answered; the service waits 200 ms for a halt.
const ORDER: Duration = Duration::from_millis(120);

/// How long the first list of tools waits for the host.
const FIRST_LIST: Duration = Duration::from_secs(3);

/// How often what is on its way is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How often a stop is sent until it is answered.
const STOP_AGAIN: Duration = Duration::from_millis(40);

/// How long a run may be under way; its own deadline is the host's to keep.
const RUN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The command line of a mount.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The host's name
    pub(crate) host: String,
    /// The id of the toolbox on the host
    pub(crate) toolbox: String,
    /// The host's address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) at: String,
    /// The id of the toolbox here, if that on the host is taken
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// Serves the toolbox until the service ends it.
pub(crate) fn run(folder: Folder, arguments: Arguments) -> ExitCode {
    let Arguments {
        host,
        toolbox,
        at,
        id,
    } = arguments;
    let id = id.unwrap_or_else(|| toolbox.clone());
    let manifest = Manifest {
        id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        description: format!("Toolbox `{toolbox}` of the machine `{host}` at {at}."),
        licence: "Apache-2.0".to_owned(),
        ..Manifest::default()
    };
    let identity = folder.valid_identity().map_err(|error| error.to_string());
    let ready = identity.and_then(|identity| Ok((identity, crate::session::endpoint(&at)?)));
    let hello = Hello {
        protocol: PROTOCOL,
        version: manifest.version.clone(),
        features: vec![REMOTE.to_owned()],
        toolboxes: vec![Raw::of(&manifest)],
        refusal: ready.as_ref().err().cloned(),
    };
    program::run_as(hello, move |_, link| {
        let (identity, endpoint) = ready.map_err(|why| Failure::new("ConfigError", why))?;
        let line = Line::new(folder, identity, host, endpoint);
        Mount::open(line, toolbox, link).map_err(|error| {
            let text = format!("its threads cannot be started: {error}");
            Failure::new(FailureKind::InternalError, text)
        })
    })
}

/// A toolbox of another machine.
#[derive(Debug)]
struct Mount(Arc<Shared>);

struct Shared {
    line: Line,
    /// The toolbox's id on its host.
    toolbox: String,
    /// Drawn when this program starts.
    mount: String,
    link: Link,
    view: Mutex<View>,
    runs: Mutex<Runs>,
    stops: Mutex<Stops>,
    lists: Mutex<Lists>,
    /// What the service is told of the backend while the host is reached, by unit.
    backends: Mutex<BTreeMap<String, Event>>,
    /// Why there is no contact, as it was told last.
    trouble: Mutex<String>,
    /// The service is gone.
    is_left: AtomicBool,
    is_closed: AtomicBool,
    /// The host was lost since the other end was looked at.
    is_doubtful: AtomicBool,
    /// The host was not asked yet who it is, or did not answer.
    is_unknown: AtomicBool,
}

/// The lists of tools that the service asked for.
#[derive(Default)]
struct Lists {
    waiting: Vec<(Instant, Reply<Raw<ToolList>>)>,
    /// The last list of the host, which stays while it is away.
    last: Option<Raw<ToolList>>,
    was_asked: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("toolbox", &self.toolbox)
            .finish_non_exhaustive()
    }
}

impl Mount {
    fn open(line: Line, toolbox: String, link: Link) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            line,
            toolbox,
            mount: uuid::Uuid::now_v7().to_string(),
            link,
            view: Mutex::default(),
            runs: Mutex::default(),
            stops: Mutex::default(),
            lists: Mutex::default(),
            backends: Mutex::default(),
            trouble: Mutex::default(),
            is_left: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_doubtful: AtomicBool::new(false),
            is_unknown: AtomicBool::new(true),
        });
        for (name, work) in [
            ("beats", Shared::beats as fn(&Arc<Shared>)),
            ("watch", Shared::watch),
        ] {
            let shared = shared.clone();
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || work(&shared))?;
        }
        Ok(Self(shared))
    }
}

impl Shared {
    /// Sends the signs of life. May wait for the network to connect.
    fn beats(self: &Arc<Self>) {
        while !self.is_closed.load(Ordering::SeqCst) {
            let began = Instant::now();
            match self.line.open() {
                Ok(()) => self.beat(),
                Err(why) => self.complain(&why),
            }
            thread::sleep(Duration::from_millis(BEAT_MS).saturating_sub(began.elapsed()));
        }
    }

    fn beat(self: &Arc<Self>) {
        let sent = clock::now_ms();
        let (open, cancelled, started) = {
            let runs = self.runs.lock();
            let (open, cancelled) = runs.claimed();
            (open, cancelled, runs.started)
        };
        let (lease, boot, after) = {
            let view = self.view.lock();
            (view.lease_until(sent), view.boot.clone(), view.after)
        };
        let asked = lease.is_some();
        let ask = Ask::Beat(Beat {
            toolbox: self.toolbox.clone(),
            mount: self.mount.clone(),
            lease,
            boot,
            after,
            started,
            open,
            cancelled,
        });
        let this = self.clone();
        let limit = Duration::from_secs(5);
        self.line.ask(
            Right::Read,
            Way::Urgent,
            limit,
            &ask,
            move |answer: Option<Answer<Pulse>>| match answer {
                Some(Answer::Ok(pulse)) => this.hear(&pulse, sent, asked),
                Some(refused) => this.lose(&failure_of(refused).message),
                None => {}
            },
        );
    }

    /// The host is out of reach, or refuses this machine.
    fn lose(&self, why: &str) {
        let halts = {
            let mut view = self.view.lock();
            view.lose();
            view.halts_on_loss
        };
        self.is_doubtful.store(true, Ordering::SeqCst);
        let moved = {
            let mut runs = self.runs.lock();
            let moved = runs.need_commander();
            runs.lose_all(clock::now_ms(), &self.lost(why));
            moved
        };
        // Where the host only halts, and for what it lets go on, a stop from here would be one more than happens there.
        if moved && !halts {
            let reason = format!("{why}, while something moved; it stops there by itself");
            self.event("latched", Severity::Error, json!({ "reason": reason }));
        }
        self.complain(why);
    }

    /// Takes a sign of life of the host; `asked` is whether the beat asked for the lease.
    fn hear(self: &Arc<Self>, pulse: &Pulse, sent: u64, asked: bool) {
        let heard = clock::now_ms();
        let clock = HostClock {
            host: pulse.clock,
            sent,
            heard,
        };
        let told = self.view.lock().hear(pulse, clock, asked);
        for told in told {
            self.tell(told, heard);
        }
        if self.is_unknown.swap(false, Ordering::SeqCst) {
            self.greet();
        }
        if !asked {
            // The host's clock is known now, so the lease can be asked for: what the service starts next may need it.
            self.beat();
        }
        self.runs.lock().end_lost(Some(sent), None, heard);
    }

    /// Tells the service what follows.
    fn tell(self: &Arc<Self>, told: News, now: u64) {
        let host = &self.line.host;
        match told {
            News::Reached => {
                self.trouble.lock().clear();
                self.is_unknown.store(true, Ordering::SeqCst);
                self.event(
                    "backend",
                    Severity::Info,
                    json!({ "state": "ready", "reason": format!("host `{host}` is reached") }),
                );
                let backends: Vec<Event> = self.backends.lock().values().cloned().collect();
                for backend in backends {
                    self.link.event(&backend);
                }
                self.answer_lists();
            }
            News::Lost(limit) => self.lose(&format!("host `{host}` was not heard for {limit} ms")),
            News::NewBoot => {
                self.is_doubtful.store(true, Ordering::SeqCst);
                let text = format!("host `{host}` was started anew");
                self.runs.lock().lose_all(now, &self.lost(&text));
                self.backends.lock().clear();
                self.is_unknown.store(true, Ordering::SeqCst);
            }
            News::Latched(reason) => {
                let reason = format!("on host `{host}`: {reason}");
                self.event("latched", Severity::Error, json!({ "reason": reason }));
            }
            News::ToolsChanged => {
                let tell = {
                    let mut lists = self.lists.lock();
                    lists.last = None;
                    lists.was_asked && lists.waiting.is_empty()
                };
                if tell {
                    self.event("tools_changed", Severity::Info, json!({}));
                }
            }
            News::Event(event) => self.pass_on(event),
        }
    }

    /// Passes on an event of the toolbox; what is said of its latch and its tools otherwise is left out.
    fn pass_on(&self, event: Event) {
        if event.kind == "backend" {
            let unit = event.data.as_ref().and_then(|data| data.get("unit")?.as_str());
            self.backends
                .lock()
                .insert(unit.unwrap_or_default().to_owned(), event.clone());
        }
        if !["latched", "tools_changed"].contains(&event.kind.as_str()) {
            self.link.event(&event);
        }
    }

    /// Asks the host who it is, and what this machine may do there.
    fn greet(self: &Arc<Self>) {
        let this = self.clone();
        let ask = Ask::Hello(Versions::own());
        self.line.ask(
            Right::Read,
            Way::Urgent,
            QUESTION,
            &ask,
            move |answer: Option<Answer<messages::Hello>>| {
                let name = &this.line.identity.name;
                match answer {
                    Some(Answer::Ok(hello)) => {
                        if let Err(why) = Versions::own().agree(name, &hello.versions, &this.line.host) {
                            this.complain(&why);
                        }
                    }
                    Some(refused) => this.complain(&failure_of(refused).message),
                    // Lost on the way; asked again after the next beat.
                    None => this.is_unknown.store(true, Ordering::SeqCst),
                }
            },
        );
    }

    /// Says once why there is no contact.
    fn complain(&self, why: &str) {
        let mut trouble = self.trouble.lock();
        if *trouble == why {
            return;
        }
        *trouble = why.to_owned();
        drop(trouble);
        self.event(
            "backend",
            Severity::Warning,
            json!({ "state": "unreachable", "reason": why }),
        );
    }

    fn event(&self, kind: &str, severity: Severity, data: serde_json::Value) {
        self.link.event(&Event {
            kind: kind.to_owned(),
            severity,
            data: Some(data),
        });
    }

    /// Looks after what is on its way. Waits for nothing but time.
    fn watch(self: &Arc<Self>) {
        let mut stop_sent = Instant::now();
        while !self.is_closed.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
            let (now, at) = (clock::now_ms(), Instant::now());
            let lost = self.view.lock().look(now);
            if let Some(lost) = lost {
                self.tell(lost, now);
            }
            let is_back = self.view.lock().reached && self.is_doubtful.swap(false, Ordering::SeqCst);
            if is_back {
                self.line.check_again();
            }
            let lost_at = {
                let view = self.view.lock();
                view.clock
                    .filter(|_| !view.reached)
                    .map(|clock| clock.sent + messages::LEASE_MS)
            };
            self.runs.lock().end_lost(None, lost_at, now);
            self.give_up_lists(at);
            let overdue = self.stops.lock().overdue(at);
            tell(overdue, &Err(self.not_reached().into()));
            let unanswered = self.stops.lock().unanswered();
            if let Some(stop) = unanswered.filter(|_| at.duration_since(stop_sent) >= STOP_AGAIN) {
                stop_sent = at;
                self.send_stop(stop);
            }
        }
    }

    /// Sends a stop. Never waits.
    fn send_stop(self: &Arc<Self>, stop: ServiceStop) {
        let ServiceStop { id, mirrors } = stop;
        let this = self.clone();
        let reason = "an emergency stop of its service".to_owned();
        let ask = Ask::Stop {
            toolbox: self.toolbox.clone(),
            id: id.clone(),
            reason: reason.clone(),
            mirrors,
        };
        let heard = move |answer: Option<Answer<StopDone>>| match answer {
            Some(Answer::Ok(done)) => {
                this.view.lock().stopped(&done, &reason);
                let result = match done.unreached {
                    None => Ok(()),
                    Some(why) => {
                        let text = format!("on host `{}`: {why}", this.line.host);
                        Err(Failure::new(FailureKind::ToolboxError, text).into())
                    }
                };
                tell(this.stops.lock().answered(&id), &result);
            }
            Some(refused) => {
                // Sent again: the host may let this machine in later, and a stop is not given up.
                this.complain(&failure_of(refused).message);
            }
            None => {}
        };
        self.line
            .ask(Right::Read, Way::Urgent, Duration::from_secs(1), &ask, heard);
    }

    fn answer_lists(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut self.lists.lock().waiting);
        for (_, reply) in waiting {
            self.list(reply);
        }
    }

    /// Answers lists for which the host did not come in time: with what it had last, or with none.
    fn give_up_lists(&self, now: Instant) {
        let (overdue, last) = {
            let mut lists = self.lists.lock();
            let waiting = std::mem::take(&mut lists.waiting);
            let (overdue, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(until, _)| *until <= now);
            lists.waiting = rest;
            (overdue, lists.last.clone())
        };
        for (_, reply) in overdue {
            let none = || Raw::of(&ToolList { tools: Vec::new() });
            reply(Ok(last.clone().unwrap_or_else(none)));
        }
    }

    fn list(self: &Arc<Self>, reply: Reply<Raw<ToolList>>) {
        let this = self.clone();
        let ask = Ask::Tools {
            toolbox: self.toolbox.clone(),
        };
        let limit = Duration::from_secs(5);
        self.line.ask(
            Right::Read,
            Way::Data,
            limit,
            &ask,
            move |answer: Option<Answer<Raw<ToolList>>>| {
                let mut lists = this.lists.lock();
                let listed = match answer {
                    Some(Answer::Ok(list)) => {
                        lists.last = Some(list.clone());
                        Ok(list)
                    }
                    Some(refused) => Err(failure_of(refused).into()),
                    None => lists.last.clone().ok_or_else(|| this.not_reached().into()),
                };
                drop(lists);
                reply(listed);
            },
        );
    }

    /// Asks about a call.
    fn question<T: serde::de::DeserializeOwned + 'static>(self: &Arc<Self>, ask: &Ask, reply: Reply<T>) {
        if !self.view.lock().reached {
            return reply(Err(self.not_reached().into()));
        }
        let this = self.clone();
        self.line.ask(
            Right::Read,
            Way::Data,
            QUESTION,
            ask,
            move |answer: Option<Answer<T>>| {
                reply(match answer {
                    Some(Answer::Ok(value)) => Ok(value),
                    Some(refused) => Err(failure_of(refused).into()),
                    None => Err(this.not_reached().into()),
                });
            },
        );
    }

    fn not_reached(&self) -> Failure {
        let (host, at) = (&self.line.host, &self.line.endpoint);
        let trouble = self.trouble.lock().clone();
        let why = match trouble.as_str() {
            "" if !self.view.lock().reached => "it was not heard yet",
            "" => "it does not answer",
            trouble => trouble,
        };
        Failure::new(
            FailureKind::ToolboxUnavailable,
            format!("host `{host}` ({at}) is not reached: {why}"),
        )
    }

    /// The failure of a run whose end nobody knows.
    fn lost(&self, why: &str) -> Failure {
        Failure::new(
            FailureKind::ToolboxUnavailable,
            format!("{why} while this ran; whether it was done is not known"),
        )
    }

    fn finish(&self, number: u64, word: RunWord, steps: Option<&program::Steps>, folder: Option<&str>) {
        match word {
            RunWord::Progress(progress) => {
                if let Some(steps) = steps {
                    steps.report(&progress);
                }
            }
            RunWord::Ended { end, content } => {
                let content = content::kept(content, folder);
                self.runs.lock().end(number, end, &content);
            }
        }
    }
}

impl Toolbox for Mount {
    fn begin(&self, opened: Reply<Functions>) {
        // What the toolbox on the host has is not known before it is reached; it answers `null` where it has none.
        opened(Ok(Functions {
            plan: true,
            conclude: true,
            message: false,
            halt: true,
            safe_stop: false,
        }));
    }

    fn tools(&self, reply: Reply<Raw<ToolList>>) {
        let mut lists = self.0.lists.lock();
        lists.was_asked = true;
        if self.0.view.lock().reached {
            drop(lists);
            return self.0.list(reply);
        }
        lists.waiting.push((Instant::now() + FIRST_LIST, reply));
    }

    fn plan(&self, tool: String, args: Raw<Object>, reply: Reply<Raw<Option<Plan>>>) {
        let toolbox = self.0.toolbox.clone();
        self.0.question(&Ask::Plan { toolbox, tool, args }, reply);
    }

    fn conclude(
        &self,
        tool: String,
        args: Raw<Object>,
        report: Raw<Report>,
        reply: Reply<Raw<Option<Conclusion>>>,
    ) {
        let toolbox = self.0.toolbox.clone();
        let ask = Ask::Conclude {
            toolbox,
            tool,
            args,
            report,
        };
        self.0.question(&ask, reply);
    }

    fn start(&self, run: Run, start: Raw<Start>) {
        let shared = &self.0;
        let start: Start = match serde_json::from_str(start.text()) {
            Ok(start) => start,
            Err(error) => return run.fail(&Failure::new(FailureKind::ValueError, error.to_string())),
        };
        let now = clock::now_ms();
        let known = {
            let view = shared.view.lock();
            let reached = view.clock.filter(|_| view.reached);
            reached
                .zip(view.boot.clone())
                .map(|(clock, boot)| (clock, boot, view.epoch, view.held))
        };
        let Some((clock, boot, epoch, held)) = known else {
            return run.fail(&shared.not_reached());
        };
        let (number, steps) = (run.number(), run.progress());
        let folder = start.call.content_dir.clone();
        let right = if held { Right::Command } else { Right::Read };
        let effect = start.action.effect;
        let ask = Ask::Start(Box::new(StartAsk {
            toolbox: shared.toolbox.clone(),
            mount: shared.mount.clone(),
            run: number,
            boot,
            epoch,
            until: clock.at(now) + START_AGE_MS,
            progress: steps.is_some(),
            start,
        }));
        let is_void = run.is_void();
        shared.runs.lock().begin(run, effect);
        if is_void {
            shared.runs.lock().end(number, RunEnd::Cancelled, &[]);
            return;
        }
        let this = shared.clone();
        shared
            .line
            .ask_many(right, Way::Data, RUN, &ask, move |word| match word {
                Some(word) => {
                    if let Ok(word) = serde_json::from_slice(word) {
                        this.finish(number, word, steps.as_ref(), folder.as_deref());
                    }
                }
                None => {
                    let text = format!("the line to host `{}` was lost", this.line.host);
                    let lost = this.lost(&text);
                    this.runs.lock().lose(number, clock::now_ms(), &lost);
                }
            });
    }

    fn cancel(&self, number: u64) -> Option<Later> {
        let shared = &self.0;
        // Each beat says it again, until the run has ended.
        shared.runs.lock().cancel(number);
        let ask = Ask::Cancel {
            toolbox: shared.toolbox.clone(),
            mount: shared.mount.clone(),
            run: number,
        };
        shared
            .line
            .ask(Right::Read, Way::Urgent, ORDER, &ask, |_: Option<Answer<()>>| {});
        None
    }

    fn halt(&self, halt: Halt, reply: Reply<()>) {
        let shared = &self.0;
        if halt.emergency {
            let is_idle = shared.is_left.load(Ordering::SeqCst) && !shared.runs.lock().are_moving();
            if is_idle {
                return reply(Ok(()));
            }
            let mirrors = shared.view.lock().take_echo(clock::now_ms());
            let stop = shared.stops.lock().take(reply, mirrors, Instant::now());
            return shared.send_stop(stop);
        }
        let this = shared.clone();
        let ask = Ask::Halt {
            toolbox: shared.toolbox.clone(),
            subsystems: halt.subsystems,
        };
        shared.line.ask(
            Right::Read,
            Way::Urgent,
            ORDER,
            &ask,
            move |answer: Option<Answer<()>>| {
                reply(match answer {
                    Some(Answer::Ok(())) => Ok(()),
                    Some(refused) => Err(failure_of(refused).into()),
                    None => Err(this.not_reached().into()),
                });
            },
        );
    }

    fn resume(&self, reply: Reply<()>) {
        let shared = &self.0;
        let on_its_way = shared.stops.lock().unanswered().is_some();
        let (reached, stop, newer) = {
            let mut view = shared.view.lock();
            let newer = view.take_newer_stop();
            (view.reached, view.stop.clone(), newer)
        };
        if !reached || on_its_way {
            let why = shared.not_reached();
            let text = format!("{}; a stop is lifted there, not here alone", why.message);
            return reply(Err(Failure::new(FailureKind::EmergencyStop, text).into()));
        }
        if let Some(StopView { stop_id, reason }) = newer {
            let text = format!(
                "{stop_id} ({reason}) came meanwhile on host `{}`; resume again",
                shared.line.host
            );
            return reply(Err(Failure::new(FailureKind::EmergencyStop, text).into()));
        }
        let this = shared.clone();
        let ask = Ask::Resume {
            toolbox: shared.toolbox.clone(),
            // Also asked where no stop is known: there may be one that was not heard of yet.
            stop_id: stop.map(|stop| stop.stop_id),
        };
        let heard = move |answer: Option<Answer<ResumeDone>>| {
            reply(match answer {
                Some(Answer::Ok(done)) => {
                    this.view.lock().resumed(done.clock);
                    Ok(())
                }
                Some(refused) => Err(failure_of(refused).into()),
                None => {
                    let text = format!(
                        "host `{}` did not answer, or does not let `{}` lift a stop: that needs the role operator there",
                        this.line.host, this.line.identity.name
                    );
                    Err(Refusal::from(Failure::new(FailureKind::EmergencyStop, text)))
                }
            });
        };
        shared.line.ask(Right::Resume, Way::Urgent, QUESTION, &ask, heard);
    }

    fn lost_service(&self) {
        self.0.is_left.store(true, Ordering::SeqCst);
    }

    fn close(&self, closed: Box<dyn FnOnce(bool) + Send>) {
        let shared = self.0.clone();
        shared.is_closed.store(true, Ordering::SeqCst);
        let ask = Ask::Leave {
            toolbox: shared.toolbox.clone(),
            mount: shared.mount.clone(),
        };
        let (told, answered) = std::sync::mpsc::channel();
        shared.line.ask(
            Right::Read,
            Way::Urgent,
            ORDER,
            &ask,
            move |_: Option<Answer<()>>| {
                _ = told.send(());
            },
        );
        let closing = thread::Builder::new().name("close".to_owned()).spawn(move || {
            _ = answered.recv_timeout(ORDER);
            closed(true);
        });
        if let Err(error) = closing {
            self.0.complain(&format!("close: {error}"));
        }
    }
}

/// The failure of an answer that is none.
pub(crate) fn failure_of<T>(answer: Answer<T>) -> Failure {
    match answer {
        Answer::Error(failure) | Answer::Lost(failure) => serde_json::from_str(failure.text())
            .unwrap_or_else(|error| {
                Failure::new(
                    FailureKind::InternalError,
                    format!("an unreadable failure: {error}"),
                )
            }),
        Answer::Ok(_) => Failure::new(FailureKind::InternalError, "it did not fail"),
    }
}
