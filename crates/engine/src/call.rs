//! A call while it is under way: who it is, how far it is, and how to end it.
//!
//! Read [`CallRequest`] for what goes in, [`CallEnd`] for what comes out, [`CallControl`] for what others can do to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Conclusion, Effect, Failure, Object, Progress, Report};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::latch::{Latch, StopRecord};
use super::plan::{Plan, PlanError};

/// Where a call's progress goes. Called from the call's own task, and with [`CallProgress::Update`] from any thread; must
/// not block.
pub type CallObserver = Arc<dyn Fn(CallProgress<'_>) + Send + Sync>;

/// How far a call is.
#[derive(Clone, Copy, Debug)]
pub enum CallProgress<'a> {
    /// It waits for its subsystems.
    Queued {
        /// Calls ahead of it.
        ahead: usize,
    },
    /// A wave starts.
    Wave {
        /// Counted from 1.
        wave: usize,
        /// How many there are.
        waves: usize,
    },
    /// An action was handed to the toolbox.
    ActionStarted {
        /// Its id.
        action: &'a str,
        /// Its wave.
        wave: usize,
        /// How many waves there are.
        waves: usize,
    },
    /// An action ended.
    ActionEnded {
        /// Its id.
        action: &'a str,
        /// How.
        outcome: ovos_toolbox_wire::Outcome,
        /// Its wave.
        wave: usize,
        /// How many waves there are.
        waves: usize,
    },
    /// The toolbox says how far an action is.
    Update {
        /// Its id.
        action: &'a str,
        /// What it says.
        progress: &'a Progress,
        /// Its wave.
        wave: usize,
        /// How many waves there are.
        waves: usize,
    },
}

/// What to call.
pub struct CallRequest {
    /// Unique among the calls under way.
    pub call_id: String,
    /// The toolbox.
    pub toolbox_id: String,
    /// The generation that runs it, as the lease names it.
    pub generation: u64,
    /// The tool.
    pub tool: String,
    /// The tool's effect.
    pub effect: Effect,
    /// The tool's own timeout for each action.
    pub action_timeout: Option<Duration>,
    /// Prepared and validated arguments.
    pub args: Object,
    /// Session of the message, when it named one.
    pub session_id: Option<String>,
    /// Language of the session.
    pub lang: Option<String>,
    /// Who asked.
    pub source: Option<String>,
    /// Whether an operator asks.
    pub operator: bool,
    /// When the request was received; `timeout` counts from here.
    pub received: Instant,
    /// The caller's own bound.
    pub timeout: Option<Duration>,
    /// Where progress goes.
    pub observer: Option<CallObserver>,
}

/// Why a call is to end before it is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// `ovos.tools.cancel`, or the caller went away.
    #[error("cancelled by {by}")]
    Cancelled {
        /// Who.
        by: String,
    },
    /// The caller's `timeout_ms` is over.
    #[error("not done within its timeout of {} ms", limit.as_millis())]
    TimedOut {
        /// The caller's bound.
        limit: Duration,
    },
    /// The user said "stop".
    #[error("the user said stop")]
    UserStop,
    /// The bus is away and motion was under way.
    #[error("the bus has been away for more than {} ms while motion was under way", limit.as_millis())]
    BusLost {
        /// The configured bound.
        limit: Duration,
    },
    /// A safe call took its place.
    #[error("`{tool}` (call {call_id}) took its place")]
    Preempted {
        /// The safe tool.
        tool: String,
        /// Its call.
        call_id: String,
    },
    /// An emergency stop.
    #[error("emergency stop {stop_id}: {reason}")]
    EmergencyStop {
        /// Which.
        stop_id: String,
        /// Who or what stopped it.
        reason: String,
    },
    /// Its toolbox is being replaced or removed.
    #[error("toolbox `{toolbox_id}` was reloaded and the call did not end in time")]
    Reloaded {
        /// Which.
        toolbox_id: String,
    },
    /// The service is going down.
    #[error("the service is shutting down")]
    Shutdown,
}

impl Cause {
    /// The stop that made an admission to this latch out of date.
    pub(crate) fn stopped(latch: &Latch) -> Self {
        let StopRecord { stop_id, reason } = latch.holder().unwrap_or_else(|| StopRecord {
            stop_id: "of a moment ago".to_owned(),
            reason: "lifted since".to_owned(),
        });
        Self::EmergencyStop { stop_id, reason }
    }

    /// Whether this ends `safe` actions too. Everything else lets them go on to their end state.
    fn ends_safe_actions(&self) -> bool {
        self.weight() > Weight::Soft
    }

    fn weight(&self) -> Weight {
        match self {
            Self::EmergencyStop { .. } => Weight::Emergency,
            Self::Preempted { .. } | Self::Reloaded { .. } | Self::Shutdown => Weight::Hard,
            _ => Weight::Soft,
        }
    }
}

/// How much a cause ends; a heavier one replaces a lighter one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Lets safe actions go on.
    Soft,
    /// Ends safe actions too.
    Hard,
    /// The same, and the answer says that the machine is stopped, whatever else was under way.
    Emergency,
}

/// Why a call never ran.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The toolbox is in emergency stop.
    #[error("toolbox `{toolbox_id}` is in emergency stop state since {}", stop.stop_id)]
    Latched {
        /// Which.
        toolbox_id: String,
        /// What stopped it.
        stop: StopRecord,
    },
    /// The toolbox would not plan it.
    #[error("{0}")]
    PlanFailed(ovos_toolbox_wire::Failure),
    /// The plan cannot be run.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// The toolbox took too long to plan.
    #[error("toolbox `{toolbox_id}` did not plan `{tool}` within {} ms", limit.as_millis())]
    PlanTimeout {
        /// Which toolbox.
        toolbox_id: String,
        /// Which tool.
        tool: String,
        /// How long it had.
        limit: Duration,
    },
    /// Its toolbox was still planning the calls ahead of it.
    #[error("toolbox `{toolbox_id}` has not planned the calls ahead of this one within {} ms", limit.as_millis())]
    TurnTooLong {
        /// Which toolbox.
        toolbox_id: String,
        /// How long it waited.
        limit: Duration,
    },
    /// Too many calls wait for subsystems.
    #[error("{} waits in line already ({limit}); in the way: {}", subsystems.join(", "), holders.join(", "))]
    QueueFull {
        /// What it wanted.
        subsystems: Vec<String>,
        /// How many may wait.
        limit: usize,
        /// Calls that hold or wait for it.
        holders: Vec<String>,
    },
    /// The subsystems did not become free in time.
    #[error("{} did not become free within {} ms; held by {}", subsystems.join(", "), limit.as_millis(), holders.join(", "))]
    WaitTooLong {
        /// What it wanted.
        subsystems: Vec<String>,
        /// How long it waited.
        limit: Duration,
        /// Calls that hold it.
        holders: Vec<String>,
    },
    /// Its toolbox had died before anything of the call got there; the next copy can run it.
    #[error("{0}")]
    NeverBegun(Failure),
    /// Where what moves is remembered does not answer.
    #[error("the state folder does not answer within {} ms, and nothing moves that is not on record (service.state_dir)", limit.as_millis())]
    RecordTooLong {
        /// How long it had.
        limit: Duration,
    },
    /// What moves cannot be remembered.
    #[error(
        "nothing moves that is not on record, and the record cannot be written (service.state_dir): {why}"
    )]
    NotRecorded {
        /// Why.
        why: String,
    },
    /// The call was ended before it ran.
    #[error("{0}")]
    Ended(Cause),
    /// A call of this id is under way.
    #[error("call_id `{call_id}` is already in flight; use another one, or none")]
    DuplicateCallId {
        /// The id.
        call_id: String,
    },
    /// Too many calls are under way.
    #[error("{limit} calls are in flight, which is the limit (service.max_calls); try again later")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum CallEnd {
    /// It never ran.
    Refused(Refusal),
    /// It ran.
    Ran {
        /// One line an action.
        report: Report,
        /// What is made of the report.
        verdict: Verdict,
        /// What ended it early, if anything did.
        cause: Option<Cause>,
    },
}

/// What is made of a report, and whether the toolbox or the engine made it.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// By the toolbox, which sends it as its answer.
    Toolbox(Conclusion),
    /// By the engine, because the toolbox leaves it to the service or could not say.
    Engine(Conclusion),
}

/// How far a call is, for status and cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Being planned.
    Planning,
    /// Waits for its subsystems.
    Queued,
    /// Its actions run.
    Running,
}

impl Phase {
    /// The word used on the bus.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Queued => "queued",
            Self::Running => "running",
        }
    }
}

/// What others can see of a call and do to it.
#[derive(Debug)]
pub struct CallControl {
    /// Its id.
    pub call_id: String,
    /// Its toolbox.
    pub toolbox_id: String,
    generation: AtomicU64,
    /// Its tool.
    pub tool: String,
    /// The tool's effect.
    pub effect: Effect,
    /// Its session, when the message named one.
    pub session_id: Option<String>,
    /// When it was received.
    pub received: Instant,
    state: Mutex<State>,
    /// Ends everything but safe actions.
    soft: CancellationToken,
    /// Ends safe actions too.
    hard: CancellationToken,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    cause: Option<Cause>,
    subsystems: Vec<String>,
}

impl CallControl {
    pub(crate) fn new(request: &CallRequest) -> Self {
        Self {
            call_id: request.call_id.clone(),
            toolbox_id: request.toolbox_id.clone(),
            generation: AtomicU64::new(request.generation),
            tool: request.tool.clone(),
            effect: request.effect,
            session_id: request.session_id.clone(),
            received: request.received,
            state: Mutex::new(State {
                phase: Phase::Planning,
                cause: None,
                subsystems: Vec::new(),
            }),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
        }
    }

    /// Asks the call to end. The first cause stays, unless a later one ends safe actions and the first did not, or is
    /// an emergency stop.
    pub fn end(&self, cause: Cause) {
        let ends_safe_actions = cause.ends_safe_actions();
        {
            let mut state = self.state.lock();
            let replaces = |first: &Cause| cause.weight() > first.weight();
            if state.cause.as_ref().is_none_or(replaces) {
                state.cause = Some(cause);
            }
        }
        // Outside the lock: cancelling wakes tasks, which read the cause.
        if ends_safe_actions {
            self.hard.cancel();
        }
        self.soft.cancel();
    }

    /// What asked it to end.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.state.lock().cause.clone()
    }

    /// The generation that runs it; 0 while it waits for one.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(crate) fn runs_on(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// What ends it before it runs.
    pub(crate) fn ended(&self) -> &CancellationToken {
        if self.effect == Effect::Safe {
            &self.hard
        } else {
            &self.soft
        }
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// What it holds or waits for.
    #[must_use]
    pub fn subsystems(&self) -> Vec<String> {
        self.state.lock().subsystems.clone()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.state.lock().phase = phase;
    }

    pub(crate) fn claims(&self, plan: &Plan) {
        self.state.lock().subsystems = plan.claim().to_vec();
    }

    pub(crate) fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    pub(crate) fn hard(&self) -> &CancellationToken {
        &self.hard
    }
}
