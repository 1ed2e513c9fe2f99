//! The engine, as the service shares it: its parts, the calls that are under way, and how they are ended from outside.
//!
//! Read [`Engine`]. A call's own course is in `course`, the emergency stop in `stop`, the toolboxes in `generations`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::call::{CallControl, Cause, Phase};
use super::calls::{CallLookup, Calls, Mark};
use super::facts::Facts;
use super::known_toolbox::KnownToolbox;
use super::known_toolboxes::KnownToolboxes;
use super::latch::{Latch, StopRecord};
use super::limits::Limits;
use super::motion::{ExpectedMotion, Motion, MotionWatch};
use super::subsystem::ALL;
use super::toolbox::RunIds;

/// Runs calls. The service has one engine, shared by every task that starts, ends or watches calls.
pub struct Engine {
    pub(crate) calls: Calls,
    pub(crate) run_ids: RunIds,
    pub(crate) toolboxes: RwLock<KnownToolboxes>,
    pub(crate) latches: watch::Sender<u64>,
    pub(crate) motion: Motion,
    pub(crate) facts: Facts,
}

impl Engine {
    /// An engine without live toolboxes. `max_calls` bounds the calls in flight. `latched` has the stops that a
    /// previous run of the service left behind, by toolbox id: they hold those toolboxes before they are attached, and
    /// a newer stop replaces them. The stop under `all` holds every toolbox, present and future, until
    /// [`Self::resume_all`].
    #[must_use]
    pub fn new(max_calls: usize, mut latched: HashMap<String, StopRecord>) -> Self {
        let everything = latched.remove(ALL);
        let held = |(toolbox_id, stop): (String, StopRecord)| {
            let entry = KnownToolbox::new(&toolbox_id, Latch::new(Some(stop)), Limits::default());
            (toolbox_id, Arc::new(entry))
        };
        Self {
            calls: Calls::new(max_calls),
            run_ids: RunIds::default(),
            toolboxes: RwLock::new(KnownToolboxes {
                by_id: latched.into_iter().map(held).collect(),
                everything,
                starting: false,
            }),
            latches: watch::Sender::new(0),
            motion: Motion::default(),
            facts: Facts::default(),
        }
    }

    /// The facts that this engine makes, and those of its calls.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Sets the watch that records which toolboxes move. From then on a call that moves something starts only when its
    /// record is written. Must be called before the first call; later watches are ignored.
    pub fn watch_motion(&self, watch: Arc<dyn MotionWatch>) {
        self.motion.watch(watch);
    }

    /// Whether a call that moves something is under way; the receiver is notified of changes.
    #[must_use]
    pub fn motion(&self) -> watch::Receiver<bool> {
        self.motion.any()
    }

    /// Keeps [`motion`](Self::motion) true until the result is dropped. For work that may begin to move something
    /// without a new request: a lost bus or a vanished door has to be noticed before the work moves something.
    pub fn expect_motion(&self) -> ExpectedMotion<'_> {
        self.motion.expect()
    }

    /// The stops of all latched toolboxes by toolbox id, including toolboxes that are not installed now. A stop that
    /// holds everything has the id `all`. The service has to keep these stops across its restart.
    #[must_use]
    pub fn latched(&self) -> BTreeMap<String, StopRecord> {
        let toolboxes = self.toolboxes.read();
        let held = |known: &Arc<KnownToolbox>| Some((known.toolbox_id.clone(), known.latch.holder()?));
        let everything = toolboxes.everything.clone().map(|stop| (ALL.to_owned(), stop));
        let held = toolboxes.by_id.values().filter_map(held);
        held.chain(everything).collect()
    }

    /// Changes whenever a toolbox is stopped or resumed.
    #[must_use]
    pub fn watch_latches(&self) -> watch::Receiver<u64> {
        self.latches.subscribe()
    }

    pub(crate) fn latches_changed(&self) {
        self.latches.send_modify(|n| *n += 1);
    }

    /// What the engine knows of a call id.
    #[must_use]
    pub fn find(&self, call_id: &str) -> CallLookup {
        self.calls.find(call_id)
    }

    /// Every call under way, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<Arc<CallControl>> {
        self.calls.in_flight()
    }

    /// The number of calls under way.
    #[must_use]
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }

    /// As [`Self::user_stop_at`], for a user who says "stop" now.
    pub fn user_stop(&self, session_id: Option<&str>) -> usize {
        self.user_stop_at(session_id, tokio::time::Instant::now().into_std())
    }

    /// Ends the calls that were received by the moment at which the user said "stop", including those that have not
    /// entered the table yet: the calls of the given session, or all calls when it is `None`. Safe actions go on.
    /// Returns the number of those calls that were under way.
    pub fn user_stop_at(&self, session_id: Option<&str>, at: Instant) -> usize {
        self.end_marked(Mark {
            at,
            cause: Cause::UserStop,
            session_id: session_id.map(str::to_owned),
            motion: false,
        })
    }

    /// Ends the calls of effect `motion`, because the bus has been away for `limit`. Returns their number.
    pub fn bus_lost(&self, limit: Duration) -> usize {
        self.end_marked(Mark {
            at: tokio::time::Instant::now().into_std(),
            cause: Cause::BusLost { limit },
            session_id: None,
            motion: true,
        })
    }

    /// Ends every call and refuses new ones, because the service is shutting down.
    pub fn shut_down(&self) {
        self.calls.close();
        self.end_all(&Cause::Shutdown, |_| true);
    }

    /// Ends the calls that a mark concerns: those under way, and those that enter the table later.
    fn end_marked(&self, mark: Mark) -> usize {
        // The mark comes first: a call that enters after it is refused, and one that entered before it is found below.
        self.calls.mark(mark.clone());
        self.end_all(&mark.cause, |call| mark.concerns(call))
    }

    /// Ends calls, waiting ones first. Otherwise a running call that ends would release its subsystems to a waiting
    /// call that is about to be ended, and the waiting call would move the machine for a moment. Returns the number of
    /// ended calls.
    pub(crate) fn end_all(&self, cause: &Cause, concerned: impl Fn(&CallControl) -> bool) -> usize {
        let mut calls = self.calls.in_flight();
        calls.retain(|call| concerned(call));
        let (running, waiting): (Vec<_>, Vec<_>) =
            calls.iter().partition(|call| call.phase() == Phase::Running);
        for call in waiting.into_iter().chain(running) {
            call.end(cause.clone());
        }
        calls.len()
    }
}
