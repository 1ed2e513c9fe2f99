//! Answers what other machines ask this host. Read [`Desk::take`].
//!
//! What stops, cancels or shows life is taken on the thread that reads the network and answered without waiting; everything else is
//! a task. Nothing that is asked carries code or configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use ovos_toolbox_wire::{Effect, Failure, FailureKind, ToolList};
use parking_lot::Mutex;
use protocol::{Answer, Raw};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use zenoh::bytes::ZBytes;
use zenoh::qos::CongestionControl;
use zenoh::query::Query;

use engine::{CallLookup, Cause, Halt, NoAnswer, Toolbox as _};

use super::cancelled::Cancelled;
use super::leases::{Leases, OnLeaseLoss};
use super::orders::{StopOrder, Stops};
use super::planned::Planned;
use super::replies::{Replies, reply_now};
use super::toolboxes::Toolboxes;
use crate::clock;
use crate::folder::{Identity, wall_clock};
use crate::messages::{Ask, Beat, Hello, Pulse, Right, ToolboxView, Versions, parse_key};
use crate::peers::{Peers, Role};

/// The longest question that is read, in bytes: twice what a result may have in a service as it is configured by default, because a
/// report has the outputs of all actions of a call.
const LONGEST_ASK: usize = 16 << 20;

/// The longest question that is read on the thread that reads the network, in bytes. Orders are far shorter.
const LONG_ASK: usize = 64 << 10;

/// What answers.
pub(super) struct Desk {
    pub(super) identity: Identity,
    /// When the certificate that the host shows ends, in seconds since 1970: a new one may take its place.
    pub(super) valid_until: AtomicU64,
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
    pub(super) stops: Mutex<Stops>,
    pub(super) planned: Mutex<Planned>,
    pub(super) cancelled: Mutex<Cancelled>,
    pub(super) on_loss: OnLeaseLoss,
}

impl Desk {
    /// Takes a query.
    pub(super) fn take(self: &Arc<Self>, query: Query) {
        let Some((peer, right)) = parse_key(query.key_expr().as_str()) else {
            return;
        };
        let peer = peer.to_owned();
        // The access control of the session has let it through; what has changed since is seen here.
        let role = self.peers.role(&peer);
        let Some(role) = role.filter(|role| right.is_of(*role)) else {
            let refused = format!(
                "`{peer}` may not do this on `{}`; the owner of that machine can allow it: `ovos-tools fabric allow {peer} --role ROLE`",
                self.identity.name
            );
            // No thread is started for a name that means nothing here.
            if query.congestion_control() == CongestionControl::Drop {
                reply_now(&query, failed(FailureKind::PermissionError, &refused));
            }
            return;
        };
        let length = query.payload().map_or(0, ZBytes::len);
        if length > LONGEST_ASK {
            let text = format!(
                "this request has {length} bytes, expected at most {LONGEST_ASK}: send or return less at once"
            );
            self.replies
                .send(&peer, &query, failed(FailureKind::ValueError, &text));
            return;
        }
        if length > LONG_ASK {
            // Its reading would delay what others ask.
            let this = self.clone();
            return self.spawn(async move { this.read_ask(&peer, role, right, query) });
        }
        self.read_ask(&peer, role, right, query);
    }

    fn read_ask(self: &Arc<Self>, peer: &str, role: Role, right: Right, query: Query) {
        let payload = query
            .payload()
            .map(|payload| payload.to_bytes())
            .unwrap_or_default();
        let ask = match serde_json::from_slice::<Ask>(&payload) {
            Ok(ask) => ask,
            Err(error) => {
                let own = env!("CARGO_PKG_VERSION");
                let text = format!(
                    "host `{}` (release {own}) cannot read this request: {error}; both machines need the same release",
                    self.identity.name
                );
                self.refuse(peer, &query, FailureKind::ValueError, &text);
                return;
            }
        };
        self.answer(peer, role, right, ask, query);
    }

    fn answer(self: &Arc<Self>, peer: &str, role: Role, right: Right, ask: Ask, query: Query) {
        match ask {
            Ask::Beat(mut beat) => {
                beat.lease = beat.lease.filter(|_| Right::Command.is_of(role));
                // Full only if the supervising thread is stuck: then there is no sign of life to give.
                _ = self.beats.try_send((peer.to_owned(), beat, query));
            }
            Ask::Stop {
                toolbox,
                id,
                reason,
                mirrors,
            } => {
                let order = StopOrder {
                    id,
                    reason: format!("{peer}: {reason}"),
                    mirrors,
                };
                self.stop(peer, toolbox, order, query);
            }
            Ask::Cancel { mount, run, .. } => {
                self.cancel(peer, &call_id(peer, &mount, run), "it was asked to end");
                self.reply(peer, &query, &Answer::Ok(()));
            }
            Ask::Halt { toolbox, subsystems } => self.halt(peer, &toolbox, subsystems, query),
            Ask::Leave { toolbox, mount } => {
                // The supervising thread ends what it still has under way.
                self.leases.lock().leave(&toolbox, &mount, peer);
                self.reply(peer, &query, &Answer::Ok(()));
            }
            Ask::Hello(theirs) => self.hello(peer, role, &theirs, &query),
            Ask::Start(start) => self.start(peer, role, right, *start, query),
            Ask::Tools { toolbox } => {
                let tools = self.toolboxes.tools(&toolbox).map(|tools| ToolList { tools });
                let tools = tools.ok_or_else(|| {
                    let text = format!(
                        "host `{}` has no toolbox `{toolbox}`; it has: {}",
                        self.identity.name,
                        self.toolboxes.ids().join(", ")
                    );
                    Failure::new(FailureKind::ToolboxUnavailable, text)
                });
                self.send(peer, &query, &Answer::from(tools));
            }
            Ask::Plan { toolbox, tool, args } => {
                let this = self.clone();
                let peer = peer.to_owned();
                self.spawn(async move {
                    let plan = this.plan(&peer, &toolbox, &tool, &args).await;
                    this.send(&peer, &query, &Answer::from(plan));
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
                        this.known(&toolbox, &tool)?;
                        let (args, report) = (read(&args)?, read(&report)?);
                        let (copy, _) = this.toolboxes.serving(&toolbox)?;
                        copy.toolbox.conclude(&tool, &args, &report).await
                    };
                    this.send(&peer, &query, &Answer::from(concluded.await));
                });
            }
            Ask::Resume { toolbox, stop_id } => {
                self.lift(peer, right, query, move |this, peer| async move {
                    this.resume(&peer, &toolbox, stop_id).await?;
                    Ok(Some(this.toolboxes.engine.stop_epoch(&toolbox)))
                });
            }
            Ask::ResumeAll { stop_id } => {
                self.lift(peer, right, query, move |this, peer| async move {
                    this.resume_all(&peer, &stop_id).await.map(|()| None)
                });
            }
        }
    }

    fn hello(&self, peer: &str, role: Role, theirs: &Versions, query: &Query) {
        let own = Versions::own();
        if let Err(why) = own.agree(&self.identity.name, theirs, peer) {
            self.refuse(peer, query, FailureKind::ValueError, &why);
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
            valid_until: self.valid_until.load(Ordering::Relaxed),
            strangers: self.strangers.load(Ordering::Relaxed),
            closed: self.toolboxes.closed(Effect::Motion),
            toolboxes: self.toolboxes.ids().into_iter().filter_map(view).collect(),
        };
        self.send(peer, query, &Answer::Ok(hello));
    }

    /// Answers a sign of life. Called by the supervising thread.
    pub(super) fn beat(&self, peer: &str, beat: &Beat, query: &Query) {
        let (now, id) = (clock::now_ms(), &beat.toolbox);
        let held = {
            let mut leases = self.leases.lock();
            match beat.lease {
                Some(until) => leases.renew(id, &beat.mount, peer, until, now),
                None => leases.holds(id, &beat.mount, peer, now),
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
            self.refuse(peer, query, FailureKind::ToolboxUnavailable, &text);
            return;
        };
        let commander = self.leases.lock().commander(id).map(str::to_owned);
        let is_free = commander.as_ref().is_none_or(|commander| commander == peer);
        let pulse = Pulse {
            boot: self.boot.clone(),
            // Read before the latch: what is told of it is at least as new.
            clock: now,
            epoch: self.toolboxes.engine.stop_epoch(id),
            stop: self.held_by(id),
            held,
            lease_comes: beat.lease.is_some() && !held && is_free,
            commander,
            state: room.state,
            tools: room.version,
            last: room.last,
            halts_on_loss: self.on_loss == OnLeaseLoss::Halt,
            events: self.toolboxes.events(id, beat.after.filter(|_| knows)),
        };
        self.reply(peer, query, &Answer::Ok(pulse));
    }

    /// Ends the runs that their mount wants ended, and those for which nobody waits there any more.
    fn end_unclaimed(&self, peer: &str, beat: &Beat) {
        for run in &beat.cancelled {
            self.cancel(peer, &call_id(peer, &beat.mount, *run), "it was asked to end");
        }
        for call in self.toolboxes.engine.calls() {
            let run = run_of(&call.call_id, peer, &beat.mount).filter(|_| call.toolbox_id == beat.toolbox);
            if run.is_some_and(|run| run <= beat.started && !beat.open.contains(&run)) {
                self.cancel(peer, &call.call_id, "its caller there no longer waits for it");
            }
        }
    }

    /// Ends a run, also one that comes later: a start may be overtaken by its cancel.
    fn cancel(&self, by: &str, call_id: &str, reason: &str) {
        self.cancelled.lock().note(by, call_id);
        if let CallLookup::InFlight(call) = self.toolboxes.engine.find(call_id)
            && call.cause().is_none()
        {
            tracing::info!(
                call_id,
                toolbox = call.toolbox_id,
                tool = call.tool,
                reason,
                "a run is ended"
            );
            let by = format!("`{by}`: {reason}");
            call.end(Cause::Cancelled { by });
        }
    }

    fn halt(self: &Arc<Self>, peer: &str, toolbox: &str, subsystems: Vec<String>, query: Query) {
        let (copy, _) = match self.toolboxes.serving(toolbox) {
            Ok(serving) => serving,
            Err(failure) => return self.reply(peer, &query, &Answer::<()>::from(Err(failure))),
        };
        // Sent when this returns; only its confirmation is waited for.
        let halted = copy.toolbox.halt(Halt {
            subsystems,
            emergency: false,
            stop_epoch: self.toolboxes.engine.stop_epoch(toolbox),
        });
        let (this, peer) = (self.clone(), peer.to_owned());
        self.spawn(async move {
            let halted = halted.await.map_err(NoAnswer::into_failure);
            this.reply(&peer, &query, &Answer::from(halted));
        });
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn_on(task, &self.runtime);
    }

    /// Answers from the thread of the one who asks.
    pub(super) fn send(&self, peer: &str, query: &Query, reply: &impl Serialize) {
        self.replies.send(peer, query, text(reply));
    }

    /// Answers at once where that never waits: a query whose answers wait for the network is answered from the thread of the one
    /// who asks, who then delays nobody else by not reading.
    pub(super) fn reply(&self, peer: &str, query: &Query, answer: &impl Serialize) {
        match query.congestion_control() {
            CongestionControl::Drop => reply_now(query, text(answer)),
            _ => self.send(peer, query, answer),
        }
    }

    pub(super) fn refuse(&self, peer: &str, query: &Query, kind: FailureKind, why: &str) {
        self.reply(peer, query, &Answer::<()>::from(Err(Failure::new(kind, why))));
    }
}

/// The id of a call that a mount of this machine has started. The name of a machine has no dot: nobody names the call of another.
pub(super) fn call_id(peer: &str, mount: &str, run: u64) -> String {
    format!("{peer}.{mount}:{run}")
}

/// The run of a mount that is the call with this id.
pub(super) fn run_of(call_id: &str, peer: &str, mount: &str) -> Option<u64> {
    let own = call_id.strip_prefix(peer)?.strip_prefix('.')?;
    own.strip_prefix(mount)?.strip_prefix(':')?.parse().ok()
}

pub(super) fn read<T: serde::de::DeserializeOwned>(raw: &Raw<T>) -> Result<T, Failure> {
    serde_json::from_str(raw.text()).map_err(|error| Failure::new(FailureKind::ValueError, error.to_string()))
}

pub(super) fn text(value: &impl Serialize) -> String {
    // What is sent has text keys and numbers that JSON has, so this does not fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn failed(kind: FailureKind, why: &str) -> String {
    text(&Answer::<()>::from(Err(Failure::new(kind, why))))
}
