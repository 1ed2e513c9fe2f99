//! The toolboxes that share one process: passes each notice to its toolbox, and each order to the process.
//!
//! Each toolbox has a [`Peer`] of its own, whose lanes are the two sockets of the process with the toolbox's id in
//! every frame. The process has a peer, too, for notices about no toolbox or about all. Read [`Members::join`], then
//! [`Members::hear`].

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ovos_toolbox_wire::{Failure, FailureKind, Manifest, Start};
use parking_lot::Mutex;
use protocol::{Answer, Notice, Order, Raw};
use serde::Deserialize;

use crate::transport::lanes::Lanes;
use crate::transport::peer::{End, Peer};
use crate::transport::sockets::Sockets;
use program::frame::Frame;
use program::json;

/// How many bytes a process may leave unread on its control lane. Beyond it no order is sent there, because such a
/// process is not ended for not reading.
const MAX_UNREAD: usize = 1 << 20;

/// The state that the toolboxes of one process share.
pub(crate) struct Members {
    sockets: Arc<Sockets>,
    state: Mutex<State>,
    ids: Arc<AtomicU64>,
    /// The newest stop epochs that were not sent, because the process reads no orders. Has a lock of its own, so that a
    /// halt does not wait for the lock of the state.
    epochs: Mutex<HashMap<String, u64>>,
    /// The ids of the toolboxes in the hello.
    offered: OnceLock<HashSet<String>>,
    /// Whether it was reported that the process is silent, and nothing was received since then.
    pub(crate) silent: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The open toolboxes: each from before its `open` is sent until its `closed` is received.
    open: HashMap<String, Arc<Peer>>,
    /// The process has ended.
    is_gone: bool,
}

/// The lanes of one toolbox.
struct Member {
    id: String,
    members: Arc<Members>,
    /// Raised before a start is sent, so that never more starts were sent than this.
    starts: AtomicU64,
}

/// The part of a manifest that names the toolbox.
#[derive(Deserialize)]
struct ManifestId {
    id: String,
}

impl Members {
    pub(crate) fn new(sockets: Arc<Sockets>) -> Arc<Self> {
        Arc::new(Self {
            sockets,
            state: Mutex::default(),
            ids: Arc::new(AtomicU64::new(1)),
            epochs: Mutex::default(),
            offered: OnceLock::new(),
            silent: AtomicBool::new(false),
        })
    }

    /// Adds a toolbox; `make` makes its peer from its lanes.
    ///
    /// # Errors
    /// Another copy of the toolbox has not closed, or the process has ended.
    pub(crate) fn join(
        self: &Arc<Self>,
        id: &str,
        make: impl FnOnce(Arc<dyn Lanes>) -> Peer,
    ) -> Result<Arc<Peer>, Failure> {
        let refused = |why: &str| {
            Err(Failure::new(
                FailureKind::ToolboxError,
                format!("toolbox `{id}`: {why}"),
            ))
        };
        let mut state = self.state.lock();
        if state.is_gone {
            return refused("its program has ended");
        }
        if state.open.contains_key(id) {
            return refused(
                "its previous instance hangs in the same program and has not closed; the program must be restarted",
            );
        }
        let lanes = Arc::new(Member {
            id: id.to_owned(),
            members: self.clone(),
            starts: AtomicU64::new(0),
        });
        let peer = Arc::new(make(lanes).numbered_by(self.ids.clone()));
        state.open.insert(id.to_owned(), peer.clone());
        Ok(peer)
    }

    /// Handles a notice from the data lane; false if it fits no open toolbox.
    pub(crate) fn hear(&self, process: &Peer, toolbox: Option<&str>, notice: Notice) -> bool {
        let Some(id) = toolbox else {
            match notice {
                Notice::Log { .. } | Notice::Closed { .. } => process.hear(notice),
                _ => return false,
            }
            return true;
        };
        let Some(peer) = self.member(id) else {
            return false;
        };
        let closes = matches!(notice, Notice::Closed { .. });
        peer.hear(notice);
        let closed = peer.keeper_view().closed.filter(|_| closes);
        if let Some((in_time, _)) = closed {
            self.state.lock().open.remove(id);
            end(&peer, End::Closed(in_time));
        }
        true
    }

    /// Handles an answer from the control lane.
    pub(crate) fn hear_control(&self, toolbox: Option<&str>, notice: Notice) {
        if let Some(peer) = toolbox.and_then(|id| self.member(id)) {
            peer.hear(notice);
        }
    }

    /// Keeps the list of the hello. Only the first one counts.
    pub(crate) fn list(&self, offers: &[Raw<Manifest>]) {
        self.offered.get_or_init(|| ids_of(offers));
    }

    /// The ids of the toolboxes that the process offers; `None` before its hello.
    pub(crate) fn offered(&self) -> Option<&HashSet<String>> {
        self.offered.get()
    }

    /// Whether so many orders wait for the process that no more are sent.
    fn is_deaf(&self) -> bool {
        self.sockets.control.unsent() >= MAX_UNREAD
    }

    /// Answers an order that is not sent. The newest stop epoch is kept; a cancel is lost, and its run, which moves
    /// nothing, goes on.
    fn refuse(&self, id: &str, order: Order) {
        let not_reached = Failure::new(FailureKind::ToolboxError, "its program does not read its orders");
        let answer = || Answer::Error(Raw::of(&not_reached));
        let (epoch, notice) = match order {
            Order::Halt {
                seq,
                emergency,
                stop_epoch,
                ..
            } => {
                let answer = answer();
                (
                    emergency.then_some(stop_epoch),
                    Some(Notice::Halted { seq, answer }),
                )
            }
            Order::Resume { seq } => {
                let answer = answer();
                (None, Some(Notice::Resumed { seq, answer }))
            }
            Order::Epoch { stop_epoch } => (Some(stop_epoch), None),
            _ => (None, None),
        };
        if let Some(epoch) = epoch {
            let mut epochs = self.epochs.lock();
            let newest = epochs.entry(id.to_owned()).or_default();
            *newest = epoch.max(*newest);
        }
        // The process may have begun to read again.
        self.sockets.wake.signal();
        if let (Some(notice), Some(peer)) = (notice, self.member(id)) {
            peer.hear(notice);
        }
    }

    fn member(&self, id: &str) -> Option<Arc<Peer>> {
        self.state.lock().open.get(id).cloned()
    }

    fn all(&self) -> Vec<Arc<Peer>> {
        self.state.lock().open.values().cloned().collect()
    }

    /// Whether a caller waits for any of the toolboxes.
    pub(crate) fn is_busy(&self) -> bool {
        self.all().iter().any(|peer| peer.keeper_view().busy)
    }

    /// The process has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.state.lock().is_gone
    }

    /// Whether the process has to be started again before all of its toolboxes can be used.
    pub(crate) fn is_stuck(&self) -> bool {
        let abandoned = |peer: Arc<Peer>| matches!(*peer.end.borrow(), Some(End::Abandoned));
        self.silent.load(Ordering::SeqCst) || self.all().into_iter().any(abandoned)
    }

    /// Waits until each toolbox has ended, or was given up.
    pub(crate) async fn settled(&self) {
        for peer in self.all() {
            // An error means that the toolbox is gone.
            _ = peer.end.subscribe().wait_for(Option::is_some).await;
        }
    }

    /// The toolboxes that have not ended.
    pub(crate) fn origins(&self) -> Vec<crate::contract::services::Origin> {
        let all = self.all();
        all.iter().map(|peer| peer.origin.clone()).collect()
    }

    /// Ends all toolboxes, because the process has ended.
    pub(crate) fn ended(&self, how: &End) {
        let open = {
            let mut state = self.state.lock();
            state.is_gone = true;
            std::mem::take(&mut state.open)
        };
        for peer in open.values() {
            end(peer, how.clone());
        }
    }

    /// Writes what waits for the process, and sends the stop epochs that were not sent, if it reads again.
    pub(crate) fn catch_up(&self) {
        let mut epochs = self.epochs.lock();
        self.sockets.control.flush();
        if !self.is_deaf() {
            self.send_epochs(&mut epochs);
        }
    }

    fn send_epochs(&self, epochs: &mut HashMap<String, u64>) {
        for (id, stop_epoch) in epochs.drain() {
            let order = Order::Epoch { stop_epoch };
            self.sockets.control.send(&Frame::about(&order, Some(&id)));
        }
    }
}

/// The ids in manifests. Manifests that are not valid have none.
pub(crate) fn ids_of(offers: &[Raw<Manifest>]) -> HashSet<String> {
    offers.iter().filter_map(id_of).collect()
}

/// The id in a manifest; `None` if the manifest is not valid.
pub(crate) fn id_of(manifest: &Raw<Manifest>) -> Option<String> {
    let named: ManifestId = json::read(manifest.text()).ok()?;
    Some(named.id)
}

/// Tells all waiting callers that a toolbox has ended. Such a toolbox drives nothing that has to come to rest.
fn end(peer: &Peer, how: End) {
    peer.ended(how);
    peer.rested.send_replace(true);
}

impl Member {
    fn sockets(&self) -> &Sockets {
        &self.members.sockets
    }
}

impl Lanes for Member {
    fn start(&self, run: u64, start: &Start, progress: bool) -> Result<(), Failure> {
        let start = Raw::of(start);
        let order = Order::Start { run, progress, start };
        let frame = self.sockets().frame(&order, Some(&self.id))?;
        self.starts.fetch_add(1, Ordering::SeqCst);
        self.sockets().data.send(&frame);
        Ok(())
    }

    fn starts(&self) -> u64 {
        self.starts.load(Ordering::SeqCst)
    }

    fn is_full(&self) -> bool {
        self.sockets().data.is_full()
    }

    fn data(&self, order: Order) -> Result<(), Failure> {
        let frame = self.sockets().frame(&order, Some(&self.id))?;
        self.sockets().data.send(&frame);
        Ok(())
    }

    fn chatter(&self, order: Order) -> bool {
        let frame = self.sockets().frame(&order, Some(&self.id));
        frame.is_ok_and(|frame| self.sockets().data.chatter(&frame))
    }

    fn control(&self, order: Order) {
        if self.members.is_deaf() {
            return self.members.refuse(&self.id, order);
        }
        // Held until the order is sent, so that no older epoch follows it.
        let mut epochs = self.members.epochs.lock();
        self.members.send_epochs(&mut epochs);
        self.sockets().control.send(&Frame::about(&order, Some(&self.id)));
    }

    fn close(&self, seq: u64) {
        let order = Order::Close { seq };
        self.sockets().data.send(&Frame::about(&order, Some(&self.id)));
    }

    fn wait(&self) {
        self.sockets().wait();
    }

    fn is_alone(&self) -> bool {
        false
    }

    fn pid(&self) -> u32 {
        self.sockets().pid()
    }
}
