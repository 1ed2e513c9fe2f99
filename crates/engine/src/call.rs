//! One call: its request, its control and its end.
//!
//! [`CallRequest`] is the input, [`CallEnd`] is the result, and [`CallControl`] lets other tasks watch and end the
//! call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_wire::{Conclusion, Effect, Failure, FailureKind, Object, Report};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::fact::{Call, Fact};
use super::facts::CallFacts;
use super::latch::{Latch, StopRecord};
use super::plan::Plan;
use super::plan_error::PlanError;

/// The input of one call.
pub struct CallRequest {
    /// Unique among the calls under way.
    pub call_id: String,
    /// The toolbox that owns the tool.
    pub toolbox_id: String,
    /// The generation that runs the call: the lease's generation; 0 while the call waits for one.
    pub generation: u64,
    /// The tool's name.
    pub tool: String,
    /// The tool's effect.
    pub effect: Effect,
    /// The timeout that the tool sets for each action; `None` where the configured timeout applies.
    pub action_timeout: Option<Duration>,
    /// The coerced and validated arguments.
    pub args: Object,
    /// The session of the message, when it names one.
    pub session_id: Option<String>,
    /// The language of the session.
    pub lang: Option<String>,
    /// The sender of the message.
    pub source: Option<String>,
    /// Whether an operator sent the call.
    pub operator: bool,
    /// Whether the caller asks for content. Otherwise the toolbox gets no folder for content, and the content that it
    /// returns is dropped.
    pub content: bool,
    /// When the request was received; `timeout` counts from here.
    pub received: Instant,
    /// The caller's timeout for the whole call.
    pub timeout: Option<Duration>,
    /// Makes the facts of the call; `None` for a request that runs nothing, such as a plan.
    pub facts: Option<CallFacts>,
}

/// Why a call has to end before it is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// `ovos.tools.cancel`, or the caller went away.
    #[error("cancelled by {by}")]
    Cancelled {
        /// The client or the event that cancelled it.
        by: String,
    },
    /// The caller's `timeout_ms` has passed.
    #[error("not done within its timeout of {} ms", limit.as_millis())]
    TimedOut {
        /// The caller's timeout.
        limit: Duration,
    },
    /// The user said "stop".
    #[error("the user said stop")]
    UserStop,
    /// The bus was away for too long while motion was under way.
    #[error("the bus was disconnected for more than {} ms during motion", limit.as_millis())]
    BusLost {
        /// The configured time (`on_bus_loss_ms`).
        limit: Duration,
    },
    /// A safe call took the call's subsystems.
    #[error("it was replaced by `{tool}` (call {call_id})")]
    Preempted {
        /// The safe tool's name.
        tool: String,
        /// The safe call's id.
        call_id: String,
    },
    /// An emergency stop.
    #[error("emergency stop {stop_id}: {reason}")]
    EmergencyStop {
        /// The id of the stop.
        stop_id: String,
        /// The source of the stop, as text for people.
        reason: String,
    },
    /// The call's toolbox is being replaced or removed.
    #[error("toolbox `{toolbox_id}` was reloaded or removed, and the call did not end in time")]
    Reloaded {
        /// The toolbox.
        toolbox_id: String,
    },
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Shutdown,
}

impl Cause {
    /// The kind of error of a call that ended for this reason.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::EmergencyStop { .. } => FailureKind::EmergencyStop,
            Self::TimedOut { .. } => FailureKind::TimeoutError,
            _ => FailureKind::CancelledError,
        }
    }
}

impl Cause {
    /// The cause for a call whose admission to this latch an emergency stop made void. If that stop has been lifted
    /// since, the cause has a placeholder for its id.
    pub(crate) fn stopped(latch: &Latch) -> Self {
        let StopRecord { stop_id, reason } = latch.holder().unwrap_or_else(|| StopRecord {
            stop_id: "that has been lifted since".to_owned(),
            reason: "call again".to_owned(),
        });
        Self::EmergencyStop { stop_id, reason }
    }

    /// Whether this cause ends `safe` actions, too. Every other cause lets them go on to their end state.
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

/// The strength of a cause; a stronger one replaces a weaker one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Ends all actions but safe ones.
    Soft,
    /// Ends safe actions, too.
    Hard,
    /// As `Hard`, and the call's outcome is `stopped` unless all of its actions completed.
    Emergency,
}

/// Why a call never ran.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The toolbox is in emergency stop.
    #[error("toolbox `{toolbox_id}` is in emergency stop: an operator lifts it with `ovos-tools resume {toolbox_id} {}`", stop.stop_id)]
    Latched {
        /// The toolbox.
        toolbox_id: String,
        /// The stop that holds it.
        stop: StopRecord,
    },
    /// The toolbox failed to plan the call.
    #[error("{0}")]
    PlanFailed(ovos_toolbox_wire::Failure),
    /// The plan is not valid.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// The toolbox took too long to plan.
    #[error("toolbox `{toolbox_id}` did not plan `{tool}` within {} ms", limit.as_millis())]
    PlanTimeout {
        /// The toolbox.
        toolbox_id: String,
        /// The tool.
        tool: String,
        /// The time that the toolbox had.
        limit: Duration,
    },
    /// The toolbox was still planning the calls ahead of this one.
    #[error("toolbox `{toolbox_id}` has not planned the calls ahead of this one within {} ms", limit.as_millis())]
    TurnTooLong {
        /// The toolbox.
        toolbox_id: String,
        /// The time that the call waited.
        limit: Duration,
    },
    /// Too many calls wait for subsystems.
    #[error("the queue for {} is full ({limit} waiting); in the way: {}", subsystems.join(", "), holders.join(", "))]
    QueueFull {
        /// The subsystems that the call needs.
        subsystems: Vec<String>,
        /// The number of calls that may wait.
        limit: usize,
        /// The calls that hold these subsystems or wait for them.
        holders: Vec<String>,
    },
    /// The subsystems did not become free in time.
    #[error("{} did not become free within {} ms; held by {}", subsystems.join(", "), limit.as_millis(), holders.join(", "))]
    WaitTooLong {
        /// The subsystems that the call needs.
        subsystems: Vec<String>,
        /// The time that the call waited.
        limit: Duration,
        /// The calls that hold these subsystems.
        holders: Vec<String>,
    },
    /// The toolbox died before it received anything of the call, so the next generation can run it.
    #[error("{0}")]
    NeverBegun(Failure),
    /// The record of moving toolboxes was not written in time.
    #[error("the motion could not be recorded within {} ms, so it was not started: the state folder does not respond \
        (service.state_dir)", limit.as_millis())]
    RecordTooLong {
        /// The time that the record had.
        limit: Duration,
    },
    /// The record of moving toolboxes cannot be written.
    #[error("the motion could not be recorded, so it was not started (service.state_dir): {why}")]
    NotRecorded {
        /// The reason.
        why: String,
    },
    /// The call was ended before it ran.
    #[error("{0}")]
    Ended(Cause),
    /// Another call with this id is under way.
    #[error("call_id `{call_id}` is already in flight; use another one, or none")]
    DuplicateCallId {
        /// The id of both calls.
        call_id: String,
    },
    /// Too many calls are under way.
    #[error("{limit} calls are in flight, which is the limit (service.max_calls): {}; try again later", holders.join(", "))]
    TooManyCalls {
        /// The number of calls that may be under way.
        limit: usize,
        /// The toolboxes with the most calls, as text for people.
        holders: Vec<String>,
    },
    /// The toolbox has used up its share of the calls; the rest is for the others.
    #[error(
        "toolbox `{toolbox_id}` already uses its share of the calls, {held} of {limit} (service.max_calls), and the rest is \
         for other toolboxes; try again later"
    )]
    ShareUsedUp {
        /// The toolbox.
        toolbox_id: String,
        /// The number of its calls under way.
        held: usize,
        /// The number of calls of all toolboxes that may be under way.
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
        /// One report line for each action.
        report: Report,
        /// The tool's result, made from the report.
        verdict: Verdict,
        /// What ended the call early, if anything did.
        cause: Option<Cause>,
        /// The content of the actions that completed, in the order of the plan, as the toolbox gave it.
        content: Vec<Value>,
    },
}

/// The result of a call that ran, and whether the toolbox or the engine made it from the report.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The toolbox made it, or failed to do so within the time limit. It is sent as the answer.
    Toolbox(Conclusion),
    /// The engine made it, because the toolbox leaves the result to the service.
    Engine(Conclusion),
}

/// The phase of a call, for status and cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The toolbox plans the call.
    Planning,
    /// The call waits for its subsystems.
    Queued,
    /// The call's actions run.
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

/// The handle by which other tasks watch a call and end it.
#[derive(Debug)]
pub struct CallControl {
    /// The call's id.
    pub call_id: String,
    /// The call's toolbox.
    pub toolbox_id: String,
    generation: AtomicU64,
    /// The call's tool.
    pub tool: String,
    /// The tool's effect.
    pub effect: Effect,
    /// The session of the message, when it names one.
    pub session_id: Option<String>,
    /// When the request was received.
    pub received: Instant,
    facts: Option<CallFacts>,
    state: Mutex<State>,
    /// Ends all actions but safe ones.
    soft: CancellationToken,
    /// Ends safe actions, too.
    hard: CancellationToken,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    cause: Option<Cause>,
    subsystems: Vec<String>,
    /// Whether the call has left the table.
    over: bool,
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
            facts: request.facts.clone(),
            state: Mutex::new(State {
                phase: Phase::Planning,
                cause: None,
                subsystems: Vec::new(),
                over: false,
            }),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
        }
    }

    /// Asks the call to end. The first cause stays, unless a later one is stronger: a cause that ends safe actions
    /// replaces one that does not, and an emergency stop replaces every other cause.
    pub fn end(&self, cause: Cause) {
        let ends_safe_actions = cause.ends_safe_actions();
        {
            let mut state = self.state.lock();
            let replaces = |first: &Cause| cause.weight() > first.weight();
            if state.cause.as_ref().is_none_or(replaces) {
                if let Some(facts) = self.facts.as_ref().filter(|_| !state.over) {
                    facts.tell(|call| Fact::Cancelled {
                        call,
                        cause: cause.to_string(),
                    });
                }
                state.cause = Some(cause);
            }
        }
        // Outside the lock: cancelling wakes tasks, which read the cause.
        if ends_safe_actions {
            self.hard.cancel();
        }
        self.soft.cancel();
    }

    /// Why the call was asked to end.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.state.lock().cause.clone()
    }

    /// The generation that runs the call; 0 while the call waits for one.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(crate) fn runs_on(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// The token that ends the call before it runs.
    pub(crate) fn ended(&self) -> &CancellationToken {
        if self.effect == Effect::Safe {
            &self.hard
        } else {
            &self.soft
        }
    }

    /// The phase of the call.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// The subsystems that the call holds or waits for.
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

    /// Notes that the call has left the table. After this, [`Self::end`] makes no fact of the call.
    pub(crate) fn leave(&self) {
        self.state.lock().over = true;
    }

    /// Makes a fact of the call for the stream and for the call's own queue.
    pub(crate) fn show(&self, fact: impl FnOnce(Arc<Call>) -> Fact) {
        if let Some(facts) = &self.facts {
            facts.show(fact);
        }
    }

    /// The maker of the call's facts.
    pub(crate) fn facts(&self) -> Option<&CallFacts> {
        self.facts.as_ref()
    }

    pub(crate) fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    pub(crate) fn hard(&self) -> &CancellationToken {
        &self.hard
    }
}
