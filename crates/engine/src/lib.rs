//! The execution engine: turns a call into a graph of actions and runs it in waves.
//!
//! It runs against [`Toolbox`] and knows neither the bus nor plugins. A call takes its `course` through `plan` (graph
//! and waves), `reserve` (subsystems), `run` (waves) and `report`; `stop` and `latch` act on all of these phases, and
//! `facts` reports them. Read [`Engine::call`].
//!
//! A plan is pure, so it shows best what a call becomes:
//!
//! ```
//! use std::time::Duration;
//!
//! use ovos_toolbox_wire::{Action, Effect};
//! use ovos_tools_engine::{Defaults, Plan};
//!
//! let action = |name: &str, subsystem: &str, after: &[&str]| Action {
//!     subsystems: vec![subsystem.to_owned()],
//!     dependencies: after.iter().map(|name| (*name).to_owned()).collect(),
//!     ..Action::named(name)
//! };
//! let actions = vec![
//!     action("reach", "left_arm", &[]),
//!     action("look", "head", &[]),
//!     action("grasp", "left_arm", &["reach", "look"]),
//! ];
//! let defaults = Defaults { effect: Effect::Motion, timeout: Duration::from_secs(10) };
//! let plan = Plan::new(actions, defaults)?;
//! assert_eq!(plan.waves, [vec![0, 1], vec![2]]);
//! # Ok::<(), ovos_tools_engine::PlanError>(())
//! ```

mod call;
mod calls;
mod course;
mod fact;
mod facts;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod known_toolbox;
mod known_toolboxes;
mod latch;
mod motion;
mod plan;
mod plan_error;
mod report;
mod reserve;
mod run;
mod stop;
mod subsystem;
mod sync;
mod toolbox;
mod wave;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;

pub use call::{CallControl, CallEnd, CallRequest, Cause, Phase, Refusal, Verdict};
use calls::Calls;
pub use calls::Known;
pub use course::Place;
pub use fact::{Answer, Asked, Call, Fact, Made, Step};
pub use facts::{BEHIND, CallFacts, Counts, Facts, Followed, Follower, StopFollower};
use known_toolbox::KnownToolbox;
pub use known_toolbox::Lease;
use known_toolboxes::KnownToolboxes;
pub use latch::{Latch, LiftError, StopRecord};
use motion::Motion;
pub use motion::{Expected, MotionWatch};
pub use plan::{Defaults, Plan, PlannedAction, StepTool, StepTools};
pub use plan_error::PlanError;
pub use reserve::{Request, Reservations, Ticket};
pub use stop::{ResumeError, Resumed, StopTarget, Stopped};
use subsystem::ALL;
pub use subsystem::Claim;
use toolbox::RunIds;
pub use toolbox::{Ended, Halt, ProgressSink, RunId, Toolbox, Unanswered};

/// The engine's limits for one toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of calls that may wait for subsystems.
    pub max_waiting: usize,
    /// How long a call may wait for its subsystems, or for the calls ahead of it to be planned.
    pub max_wait: Duration,
    /// How long a toolbox may take to plan, to conclude, or to answer a resume.
    pub plan: Duration,
    /// The timeout of an action where neither the action nor the tool has one.
    pub default_timeout: Duration,
    /// How long the engine waits for the report of an action's end after it asked the toolbox to end the action.
    pub grace: Duration,
    /// As `grace`, for an action of effect `motion`: a vehicle needs seconds to brake.
    pub settle: Duration,
    /// How long the engine waits for a safe action; then the action is reported as `abandoned`.
    pub safe_limit: Duration,
    /// How long a toolbox may take to confirm a halt.
    pub halt: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_waiting: 64,
            max_wait: Duration::from_secs(30),
            plan: Duration::from_secs(1),
            default_timeout: Duration::from_secs(10),
            grace: Duration::from_millis(500),
            settle: Duration::from_secs(3),
            safe_limit: Duration::from_secs(120),
            halt: Duration::from_millis(200),
        }
    }
}

/// Runs calls. The service has one engine, shared by every task that starts, ends or watches calls.
pub struct Engine {
    calls: Calls,
    run_ids: RunIds,
    toolboxes: RwLock<KnownToolboxes>,
    latches: watch::Sender<u64>,
    motion: Motion,
    facts: Facts,
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
            let known = KnownToolbox::new(&toolbox_id, Latch::new(Some(stop)), Limits::default());
            (toolbox_id, Arc::new(known))
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
    pub fn expect_motion(&self) -> Expected<'_> {
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

    fn latches_changed(&self) {
        self.latches.send_modify(|n| *n += 1);
    }
}
