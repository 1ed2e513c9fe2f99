//! Answers what other machines ask this host. Read [`Desk::take`].
//!
//! What stops, cancels or shows life is taken on the thread that reads the network and answered without waiting; everything else is
//! a task. Nothing that is asked carries code or configuration.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Action, Effect, Failure, FailureKind, Progress, ToolList};
use parking_lot::Mutex;
use protocol::{Answer, Raw, RunEnd};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use zenoh::query::Query;

use engine::{
    CallLookup, CallRequest, Cause, Defaults, Halt, NoAnswer, Plan, ProgressSink, StopTarget, Toolbox as _,
};

use super::action::{Coming, end_of};
use super::content;
use super::leases::Leases;
use super::replies::{Replies, reply_now};
use super::toolboxes::Toolboxes;
use crate::clock;
use crate::folder::{Identity, wall_clock};
use crate::messages::{
    Ask, Beat, Hello, Pulse, ResumeDone, Right, RunWord, StartAsk, StopDone, StopView, ToolboxView, Versions,
    parse_key,
};
use crate::peers::{Peers, Role};

/// How many stops are remembered, to answer one that is repeated.
const REMEMBERED_STOPS: usize = 64;

/// How long a halt may take until its asker is told that it was not confirmed.
const HALT: Duration = Duration::from_millis(200);

/// What answers.
pub(super) struct Desk {
    pub(super) identity: Identity,
    pub(super) boot: String,
    pub(super) peers: Peers,
    pub(super) toolboxes: Arc<Toolboxes>,
    pub(super) leases: Mutex<Leases>,
    pub(super) strangers: AtomicU64,
    /// Signs of life, for the thread that supervises: an answer to one means that this thread runs.
    pub(super) beats: SyncSender<(String, Beat, Query)>,
    pub(super) runtime: Handle,
    pub(super) tracker: TaskTracker,
    pub(super) replies: Arc<Replies>,
    pub(super) stops: Mutex<VecDeque<(String, Option<StopDone>)>>,
}

impl Desk {
    /// Takes a query.
    pub(super) fn take(self: &Arc<Self>, query: Query) {
        let Some((peer, right)) = parse_key(query.key_expr().as_str()) else {
            return;
        };
        let peer = peer.to_owned();
        // The access control of the session has let it through; what has changed since is seen here.
        let role = self.peers.now().role(&peer);
        let Some(role) = role.filter(|role| right.is_of(*role)) else {
            let refused = format!("`{peer}` may not do this on `{}`", self.identity.name);
            refuse(&query, FailureKind::PermissionError, &refused);
            return;
        };
        let payload = query
            .payload()
            .map(|payload| payload.to_bytes())
            .unwrap_or_default();
        let ask = match serde_json::from_slice::<Ask>(&payload) {
            Ok(ask) => ask,
            Err(error) => {
                let own = env!("CARGO_PKG_VERSION");
                let text = format!(
                    "host `{}` (release {own}) does not know what it is asked: {error}",
                    self.identity.name
                );
                refuse(&query, FailureKind::ValueError, &text);
                return;
            }
        };
        self.answer(&peer, role, right, ask, query);
    }

    fn answer(self: &Arc<Self>, peer: &str, role: Role, right: Right, ask: Ask, query: Query) {
        match ask {
            Ask::Beat(mut beat) => {
                beat.lease = beat.lease.filter(|_| Right::Command.is_of(role));
                // Full only if the supervising thread is stuck: then there is no sign of life to give.
                _ = self.beats.try_send((peer.to_owned(), beat, query));
            }
            Ask::Stop { toolbox, id, reason } => self.stop(peer, &toolbox, id, &reason, query),
            Ask::Cancel { mount, run, .. } => {
                self.cancel(&call_id(&mount, run), peer);
                reply(&query, &Answer::Ok(()));
            }
            Ask::Halt { toolbox, subsystems } => self.halt(&toolbox, subsystems, query),
            Ask::Leave { toolbox, mount } => {
                self.leases.lock().leave(&toolbox, &mount);
                reply(&query, &Answer::Ok(()));
            }
            Ask::Hello(theirs) => self.hello(peer, role, &theirs, &query),
            Ask::Start(start) => self.start(peer, role, right, *start, query),
            Ask::Tools { toolbox } => {
                let tools = self.toolboxes.tools(&toolbox).map(|tools| ToolList { tools });
                let tools = tools.ok_or_else(|| {
                    let text = format!("host `{}` has no toolbox `{toolbox}`", self.identity.name);
                    Failure::new(FailureKind::ToolboxUnavailable, text)
                });
                self.send(peer, &query, &Answer::from(tools));
            }
            Ask::Plan { toolbox, tool, args } => {
                let this = self.clone();
                let peer = peer.to_owned();
                self.spawn(async move {
                    let plan = async {
                        let args = read(&args)?;
                        let (copy, _) = this.toolboxes.serving(&toolbox)?;
                        copy.toolbox
                            .plan(&tool, &args)
                            .await
                            .map_err(NoAnswer::into_failure)
                    };
                    this.send(&peer, &query, &Answer::from(plan.await));
                });
            }
            Ask::Conclude {
                toolbox,
                tool,
                args,
                report,
            } => {
                let this = self.clone();
                let peer = peer.to_owned();
                self.spawn(async move {
                    let concluded = async {
                        let (args, report) = (read(&args)?, read(&report)?);
                        let (copy, _) = this.toolboxes.serving(&toolbox)?;
                        copy.toolbox.conclude(&tool, &args, &report).await
                    };
                    this.send(&peer, &query, &Answer::from(concluded.await));
                });
            }
            Ask::Resume { toolbox, stop_id } => {
                if right != Right::Resume {
                    refuse(
                        &query,
                        FailureKind::PermissionError,
                        "only an operator lifts an emergency stop",
                    );
                    return;
                }
                let this = self.clone();
                let peer = peer.to_owned();
                self.spawn(async move {
                    let by = format!("{peer} (operator)");
                    let resumed = this.resume(&toolbox, stop_id, &by).await;
                    let done = resumed.map(|()| ResumeDone {
                        clock: clock::now_ms(),
                    });
                    let done = done.map_err(|why| Failure::new(FailureKind::EmergencyStop, why));
                    this.send(&peer, &query, &Answer::from(done));
                });
            }
        }
    }

    fn hello(&self, peer: &str, role: Role, theirs: &Versions, query: &Query) {
        let own = Versions::own();
        if let Err(why) = own.agree(&self.identity.name, theirs, peer) {
            refuse(query, FailureKind::ValueError, &why);
            return;
        }
        let view = |id: String| {
            let room = self.toolboxes.view(&id)?;
            Some(ToolboxView {
                description: room.description,
                state: room.state,
                tools: room.tools,
                stop: self.held_by(&id),
                commander: self.leases.lock().commander(&id).map(str::to_owned),
                id,
            })
        };
        let hello = Hello {
            versions: own,
            boot: self.boot.clone(),
            role,
            wall_clock: wall_clock(),
            valid_until: self.identity.valid_until,
            strangers: self.strangers.load(Ordering::Relaxed),
            toolboxes: self.toolboxes.ids().into_iter().filter_map(view).collect(),
        };
        self.send(peer, query, &Answer::Ok(hello));
    }

    /// The stop that holds a toolbox.
    fn held_by(&self, toolbox: &str) -> Option<StopView> {
        let engine = &self.toolboxes.engine;
        let holder = engine.latch(toolbox).or_else(|| engine.latch("all"))?;
        Some(StopView {
            stop_id: holder.stop_id,
            reason: holder.reason,
        })
    }

    /// Lifts the stop that holds a toolbox, if it is the newest that the asker knows. Where one stop holds everything, that is lifted.
    async fn resume(&self, toolbox: &str, stop_id: Option<String>, by: &str) -> Result<(), String> {
        let Some(holder) = self.held_by(toolbox) else {
            return Ok(());
        };
        let Some(stop_id) = stop_id else {
            return Err(format!("stop {} came meanwhile; ask again", holder.stop_id));
        };
        let engine = &self.toolboxes.engine;
        let resumed = match engine.latch("all") {
            None => engine.resume(toolbox, &stop_id, by).await,
            Some(_) => engine.resume_all(&stop_id, by).await.and_then(|resumed| {
                let refused = resumed
                    .into_iter()
                    .filter(|resumed| resumed.toolbox_id == toolbox);
                refused
                    .filter_map(|resumed| resumed.refused)
                    .next()
                    .map_or(Ok(()), Err)
            }),
        };
        self.toolboxes.keep();
        resumed.map_err(|error| error.to_string())
    }

    /// Answers a sign of life. Called by the supervising thread.
    pub(super) fn beat(&self, peer: &str, beat: &Beat, query: &Query) {
        let (now, id) = (clock::now_ms(), &beat.toolbox);
        let held = {
            let mut leases = self.leases.lock();
            match beat.lease {
                Some(until) => leases.renew(id, &beat.mount, peer, until, now),
                None => leases.holds(id, &beat.mount, now),
            }
        };
        self.end_unclaimed(peer, beat);
        let knows = beat.boot.as_ref() == Some(&self.boot);
        let Some(room) = self.toolboxes.view(id) else {
            let text = format!(
                "host `{}` has no toolbox `{id}`; it has: {}",
                self.identity.name,
                self.toolboxes.ids().join(", ")
            );
            refuse(query, FailureKind::ToolboxUnavailable, &text);
            return;
        };
        let pulse = Pulse {
            boot: self.boot.clone(),
            // Read before the latch: what is told of it is at least as new.
            clock: now,
            epoch: self.toolboxes.engine.stop_epoch(id),
            stop: self.held_by(id),
            held,
            commander: self.leases.lock().commander(id).map(str::to_owned),
            state: room.state,
            tools: room.version,
            last: room.last,
            events: self.toolboxes.events(id, beat.after.filter(|_| knows)),
        };
        reply(query, &Answer::Ok(pulse));
    }

    /// Ends the runs that their mount wants ended, and those for which nobody waits there any more.
    fn end_unclaimed(&self, peer: &str, beat: &Beat) {
        for run in &beat.cancelled {
            self.cancel(&call_id(&beat.mount, *run), peer);
        }
        for call in self.toolboxes.engine.calls() {
            let run = run_of(&call.call_id, &beat.mount).filter(|_| call.toolbox_id == beat.toolbox);
            if run.is_some_and(|run| run <= beat.started && !beat.open.contains(&run)) {
                self.cancel(&call.call_id, peer);
            }
        }
    }

    fn cancel(&self, call_id: &str, by: &str) {
        if let CallLookup::InFlight(call) = self.toolboxes.engine.find(call_id)
            && call.cause().is_none()
        {
            call.end(Cause::Cancelled { by: by.to_owned() });
        }
    }

    fn halt(&self, toolbox: &str, subsystems: Vec<String>, query: Query) {
        let (copy, _) = match self.toolboxes.serving(toolbox) {
            Ok(serving) => serving,
            Err(failure) => return reply(&query, &Answer::<()>::from(Err(failure))),
        };
        // Sent when this returns; only its confirmation is waited for.
        let halted = copy.toolbox.halt(Halt {
            subsystems,
            emergency: false,
            stop_epoch: self.toolboxes.engine.stop_epoch(toolbox),
        });
        self.spawn(async move {
            let halted = halted.await.map_err(NoAnswer::into_failure);
            reply(&query, &Answer::from(halted));
        });
    }

    /// An emergency stop: never refused. A host that is latched halts once more, and neither the stop that holds it nor its epoch
    /// changes: two machines that hear of each other's stops would stop each other for ever.
    fn stop(self: &Arc<Self>, peer: &str, toolbox: &str, id: String, reason: &str, query: Query) {
        {
            let mut stops = self.stops.lock();
            if let Some((_, done)) = stops.iter().find(|(known, _)| *known == id) {
                // One that is under way is answered by the repetition after its end.
                if let Some(done) = done {
                    reply(&query, &Answer::Ok(done.clone()));
                }
                return;
            }
            if stops.len() == REMEMBERED_STOPS {
                stops.pop_front();
            }
            stops.push_back((id.clone(), None));
        }
        let reason = format!("{peer}: {reason}");
        let serving = self.toolboxes.serving(toolbox).ok();
        let holder = self.held_by(toolbox);
        let this = self.clone();
        let (toolbox, clock) = (toolbox.to_owned(), clock::now_ms());
        if let (Some(holder), Some((copy, _))) = (holder, serving) {
            let halted = copy.toolbox.halt(Halt {
                subsystems: vec!["all".to_owned()],
                emergency: true,
                stop_epoch: self.toolboxes.engine.stop_epoch(&toolbox),
            });
            for call in self.toolboxes.engine.calls() {
                if call.toolbox_id == toolbox {
                    let (stop_id, reason) = (holder.stop_id.clone(), reason.clone());
                    call.end(Cause::EmergencyStop { stop_id, reason });
                }
            }
            self.spawn(async move {
                let unreached = match tokio::time::timeout(HALT, halted).await {
                    Ok(Ok(())) => None,
                    Ok(Err(why)) => Some(why.to_string()),
                    Err(_) => Some(format!(
                        "its halt was not answered within {} ms",
                        HALT.as_millis()
                    )),
                };
                let stop_id = holder.stop_id;
                this.stopped(
                    &id,
                    StopDone {
                        stop_id,
                        clock,
                        unreached,
                    },
                    &query,
                );
            });
            return;
        }
        let stopped = self
            .toolboxes
            .stop(&StopTarget::Toolboxes(vec![toolbox.clone()]), &reason);
        self.spawn(async move {
            let stopped = stopped.await;
            let own = stopped.iter().find(|stopped| stopped.toolbox_id == toolbox);
            let done = own.or(stopped.first()).map(|stopped| StopDone {
                stop_id: stopped.stop_id.clone(),
                clock,
                unreached: stopped.unreached.clone(),
            });
            let done = done.unwrap_or_else(|| StopDone {
                stop_id: String::new(),
                clock,
                unreached: Some("this host has no toolbox".to_owned()),
            });
            this.stopped(&id, done, &query);
        });
    }

    fn stopped(&self, id: &str, done: StopDone, query: &Query) {
        if let Some((_, remembered)) = self.stops.lock().iter_mut().find(|(known, _)| known == id) {
            *remembered = Some(done.clone());
        }
        reply(query, &Answer::Ok(done));
    }

    fn start(self: &Arc<Self>, peer: &str, role: Role, right: Right, ask: StartAsk, query: Query) {
        let received = Instant::now();
        let this = self.clone();
        let peer = peer.to_owned();
        // Checked here, in the order of arrival, and begun at once.
        let checked = self.check(&peer, role, right, &ask);
        let call_id = call_id(&ask.mount, ask.run);
        self.spawn(async move {
            let (end, content) = match checked {
                Err(failure) => (RunEnd::Error(Raw::of(&failure)), Vec::new()),
                Ok(effect) => {
                    this.run(&peer, role, &call_id, effect, received, ask, &query)
                        .await
                }
            };
            this.send(&peer, &query, &RunWord::Ended { end, content });
        });
    }

    /// Whether a start may begin, and the effect of its action.
    fn check(&self, peer: &str, role: Role, right: Right, ask: &StartAsk) -> Result<Effect, Failure> {
        let permission = |text: String| Err(Failure::new(FailureKind::PermissionError, text));
        let (name, toolbox) = (&self.identity.name, &ask.toolbox);
        let tool = &ask.start.call.tool;
        let Some(known) = self.toolboxes.tool(toolbox, tool) else {
            return permission(format!(
                "host `{name}` does not offer `{tool}` of toolbox `{toolbox}`"
            ));
        };
        let effect = ask.start.action.effect;
        if matches!(known.effect, Effect::Stop | Effect::Resume) {
            return permission(format!(
                "`{tool}` stops or resumes; host `{name}` takes these as such"
            ));
        }
        let now = clock::now_ms();
        let reads = known.effect == Effect::Read && effect == Effect::Read;
        if !reads {
            if !Right::Command.is_of(role) {
                return permission(format!("`{peer}` may only read on host `{name}`"));
            }
            let leases = self.leases.lock();
            if right != Right::Command || !leases.holds(toolbox, &ask.mount, now) {
                let other = leases.commander(toolbox).filter(|other| *other != peer);
                let text = match other {
                    Some(other) => format!(
                        "`{other}` commands `{toolbox}` of host `{name}` now; others may read and stop"
                    ),
                    None => format!(
                        "`{peer}` does not hold the lease of `{toolbox}` of host `{name}`; it was lost, ask again"
                    ),
                };
                return Err(Failure::new(FailureKind::BusyError, text));
            }
        }
        let epoch = self.toolboxes.engine.stop_epoch(toolbox);
        if ask.boot != self.boot || ask.epoch != epoch {
            return Err(Failure::new(
                FailureKind::EmergencyStop,
                format!("an emergency stop, or a new start of host `{name}`, came after this was planned"),
            ));
        }
        if now > ask.until {
            return Err(Failure::new(
                FailureKind::TimeoutError,
                format!(
                    "the start reached host `{name}` {} ms too late, so it was not begun",
                    now - ask.until
                ),
            ));
        }
        Ok(effect)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one start, each of its own type"
    )]
    async fn run(
        self: &Arc<Self>,
        peer: &str,
        role: Role,
        call_id: &str,
        effect: Effect,
        received: Instant,
        ask: StartAsk,
        query: &Query,
    ) -> (RunEnd, Vec<ovos_toolbox_wire::Content>) {
        let error = |failure: &Failure| (RunEnd::Error(Raw::of(failure)), Vec::new());
        let (copy, generation) = match self.toolboxes.serving(&ask.toolbox) {
            Ok(serving) => serving,
            Err(failure) => return error(&failure),
        };
        let engine = &self.toolboxes.engine;
        let Some(lease) = engine.lease(&ask.toolbox, generation) else {
            let text = format!("toolbox `{}` is being replaced", ask.toolbox);
            return error(&Failure::new(FailureKind::ToolboxUnavailable, text));
        };
        let (call, action) = (ask.start.call, ask.start.action);
        let limit = Duration::from_millis(call.deadline_ms);
        let planned = Action {
            id: Some(action.id),
            name: action.name,
            subsystems: action.subsystems,
            params: action.params,
            dependencies: Vec::new(),
            timeout_ms: Some(call.deadline_ms),
            effect: Some(effect),
        };
        let plan = match Plan::new(
            vec![planned],
            Defaults {
                effect,
                timeout: limit,
            },
        ) {
            Ok(plan) => plan,
            Err(why) => return error(&Failure::new(FailureKind::PlanError, why.to_string())),
        };
        let request = CallRequest {
            call_id: call_id.to_owned(),
            toolbox_id: ask.toolbox.clone(),
            generation,
            tool: call.tool,
            effect,
            action_timeout: Some(limit),
            args: ovos_toolbox_wire::Object::new(),
            session_id: call.session_id,
            lang: call.lang,
            source: call.source,
            operator: call.operator && role >= Role::Operator,
            content: call.content_dir.is_some(),
            received,
            timeout: None,
            facts: None,
        };
        let entry = match engine.enter(&request) {
            Ok(entry) => entry,
            Err(refusal) => {
                let (end, _) = end_of(engine::CallEnd::Refused(refusal));
                return (end, Vec::new());
            }
        };
        copy.expect(
            call_id,
            Coming {
                inputs: ask.start.inputs,
                progress: ask.progress.then(|| self.progress(peer, query)),
            },
        );
        let ended = engine.call_at(entry, &lease, request, Some(plan)).await;
        copy.forget(call_id);
        let (end, content) = end_of(ended);
        if content.is_empty() {
            return (end, Vec::new());
        }
        let folder = self.toolboxes.content.join(&ask.toolbox);
        let carried = tokio::task::spawn_blocking(move || content::carried(content, &folder)).await;
        (end, carried.unwrap_or_default())
    }

    fn progress(&self, peer: &str, query: &Query) -> ProgressSink {
        let (peer, query) = (peer.to_owned(), query.clone());
        let replies = self.replies.clone();
        Arc::new(move |progress: Progress| {
            replies.send(&peer, &query, text(&RunWord::Progress(progress)));
        })
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn_on(task, &self.runtime);
    }

    fn send(&self, peer: &str, query: &Query, reply: &impl Serialize) {
        self.replies.send(peer, query, text(reply));
    }
}

/// The id of a call that a mount has started.
pub(super) fn call_id(mount: &str, run: u64) -> String {
    format!("{mount}:{run}")
}

/// The run of a mount that is the call with this id.
pub(super) fn run_of(call_id: &str, mount: &str) -> Option<u64> {
    call_id.strip_prefix(mount)?.strip_prefix(':')?.parse().ok()
}

fn read<T: serde::de::DeserializeOwned>(raw: &Raw<T>) -> Result<T, Failure> {
    serde_json::from_str(raw.text()).map_err(|error| Failure::new(FailureKind::ValueError, error.to_string()))
}

fn text(value: &impl Serialize) -> String {
    // What is sent has text keys and numbers that JSON has, so this does not fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn reply(query: &Query, answer: &impl Serialize) {
    reply_now(query, text(answer));
}

fn refuse(query: &Query, kind: FailureKind, why: &str) {
    reply(query, &Answer::<()>::from(Err(Failure::new(kind, why))));
}
