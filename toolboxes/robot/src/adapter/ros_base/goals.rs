//! The goals that a robot pursues: each is ended by a stop of its part, also one that a call still waits for.
//!
//! Owns which goals are open. A goal is open until the robot has said that it has ended: every stop of its part cancels it again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use ros_graph::error::GraphError;
use ros_graph::graph::{Goal, GoalEnd, GoalStatus, Graph};
use serde_json::Value;

use super::channels::ActionChannel;
use crate::adapter::{BackendState, Notice, Notify};
use crate::subsystem::Subsystem;

/// How long a robot is given to accept a goal.
const ACCEPTING: Duration = Duration::from_secs(5);
/// How long a goal is given to end after its cancel.
pub(super) const GOAL_ENDS: Duration = Duration::from_millis(500);
/// How long an action is looked for before a goal is sent to it, and how often.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(100);

/// The goals that were sent, and of which the robot has not said that they have ended.
#[derive(Default)]
pub(super) struct Goals(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// Counts the stops of each part: a goal of an earlier one is not pursued.
    stops: BTreeMap<Subsystem, u64>,
    goals: Vec<Entry>,
}

struct Entry {
    on: Subsystem,
    goal: OpenGoal,
    /// Its cancel was not confirmed, and no call waits for it.
    is_abandoned: bool,
}

/// A goal that may still move a part.
#[derive(Clone)]
pub(super) enum OpenGoal {
    /// One that was accepted.
    Accepted(Arc<Goal>),
    /// One of this action that may have been accepted, and that nothing names.
    Nameless(String),
}

impl OpenGoal {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Accepted(one), Self::Accepted(other)) => Arc::ptr_eq(one, other),
            (Self::Nameless(one), Self::Nameless(other)) => one == other,
            _ => false,
        }
    }

    /// Cancels it, and waits until it has ended, `limit` at most for both. One that can be followed no more, because its controller was
    /// started anew or the connection broke, is cancelled with all others of its action.
    async fn cancel(&self, graph: &dyn Graph, limit: Duration) -> Result<(), GraphError> {
        match self {
            Self::Nameless(action) => graph.cancel_all(action, limit).await,
            Self::Accepted(goal) => match goal.end(Duration::ZERO).await {
                Ok(None) => goal.cancel(limit).await.map(drop),
                Ok(Some(end)) if end.status != GoalStatus::Unknown => Ok(()),
                Ok(Some(_)) | Err(_) => {
                    let all = graph.cancel_all(goal.action(), limit);
                    let (_, all) = tokio::join!(goal.cancel(limit), all);
                    all
                }
            },
        }
    }
}

impl Goals {
    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        // Every change is one insertion, or one removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a part was stopped.
    pub(super) fn stops(&self, on: Subsystem) -> u64 {
        self.lock().stops(on)
    }

    /// Sends a goal. One that is accepted after a stop is cancelled at once.
    ///
    /// # Errors
    /// It was not accepted, or [`GraphError::GoalGoesOn`] where its cancel failed; `None` where it was stopped meanwhile.
    pub(super) async fn send(
        &self,
        graph: &dyn Graph,
        (action, goal): (&str, &Value),
        (on, stops): (Subsystem, u64),
    ) -> Result<Option<Arc<Goal>>, GraphError> {
        let goal = match graph.send_goal(action, goal, ACCEPTING).await {
            Ok(goal) => Arc::new(goal),
            Err(error) => {
                // It may have been accepted, and nothing says so.
                if let GraphError::GoalGoesOn { .. } | GraphError::NoAnswer { .. } | GraphError::Lost { .. } =
                    error
                {
                    self.open(on, OpenGoal::Nameless(action.to_owned()));
                }
                return Err(error);
            }
        };
        let open = OpenGoal::Accepted(Arc::clone(&goal));
        if self.open(on, open.clone()) == stops {
            return Ok(Some(goal));
        }
        // Whatever keeps it from ending, it may go on.
        match self.cancel(graph, &[open], GOAL_ENDS).await.is_empty() {
            true => Ok(None),
            false => Err(GraphError::GoalGoesOn {
                action: action.to_owned(),
                waited: GOAL_ENDS,
            }),
        }
    }

    /// Keeps a goal for the stops to come, and returns how often its part was stopped before.
    fn open(&self, on: Subsystem, goal: OpenGoal) -> u64 {
        let mut open = self.lock();
        if !open.goals.iter().any(|known| known.goal.is(&goal)) {
            let is_abandoned = matches!(goal, OpenGoal::Nameless(_));
            open.goals.push(Entry {
                on,
                goal,
                is_abandoned,
            });
        }
        open.stops(on)
    }

    /// The robot has said that the goal has ended.
    pub(super) fn close(&self, goal: &OpenGoal) {
        self.lock().goals.retain(|open| !open.goal.is(goal));
    }

    /// The goals that no call waits for: their cancel was not confirmed.
    pub(super) fn abandoned(&self) -> Vec<OpenGoal> {
        let open = self.lock();
        let abandoned = open.goals.iter().filter(|entry| entry.is_abandoned);
        abandoned.map(|entry| entry.goal.clone()).collect()
    }

    fn abandon(&self, goal: &OpenGoal) {
        let mut open = self.lock();
        for entry in open.goals.iter_mut().filter(|entry| entry.goal.is(goal)) {
            entry.is_abandoned = true;
        }
    }

    /// What has to be ended for these parts to stand, in their order. What is sent from now on belongs to the time after the stop.
    pub(super) fn stop(&self, parts: &[Subsystem]) -> Vec<OpenGoal> {
        let mut open = self.lock();
        for part in parts {
            *open.stops.entry(*part).or_default() += 1;
        }
        let place = |on: &Subsystem| match on {
            Subsystem::All => Some(0),
            on => parts.iter().position(|part| part == on),
        };
        let concerned = open
            .goals
            .iter()
            .filter_map(|entry| Some((place(&entry.on)?, &entry.goal)));
        let mut concerned: Vec<(usize, &OpenGoal)> = concerned.collect();
        concerned.sort_by_key(|(place, _)| *place);
        concerned.into_iter().map(|(_, goal)| goal.clone()).collect()
    }

    /// Cancels goals at the same time, and waits until they have ended, `limit` at most for all. Returns why some may go on: those stay
    /// open.
    pub(super) async fn cancel(
        &self,
        graph: &dyn Graph,
        goals: &[OpenGoal],
        limit: Duration,
    ) -> Vec<GraphError> {
        let each = goals.iter().map(async |goal| {
            let ended = goal.cancel(graph, limit).await;
            match &ended {
                Ok(()) => self.close(goal),
                Err(_) => self.abandon(goal),
            }
            ended.err()
        });
        join_all(each).await.into_iter().flatten().collect()
    }
}

impl Open {
    fn stops(&self, on: Subsystem) -> u64 {
        let each = on.each().into_iter();
        each.filter_map(|part| self.stops.get(&part)).sum()
    }
}

/// Tells the owner that a stop did not end everything.
pub(super) fn report_open(notify: &Notify, errors: &[GraphError]) {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    notify(Notice::Backend {
        state: BackendState::Degraded,
        reason: format!(
            "the stop did not end everything: {}; press the robot's own button, or stop it again: that cancels it again",
            errors.join("; ")
        ),
    });
}

/// The type that the graph has an action as, where it is one of these; `None` where the carrier does not tell.
///
/// # Errors
/// Nothing serves it, or it is of another type.
pub(super) async fn type_of(
    graph: &dyn Graph,
    action: &str,
    types: &[&str],
) -> Result<Option<String>, GraphError> {
    for _ in 0..LOOKS {
        let Ok(served) = graph.action_types(action).await else {
            return Ok(None);
        };
        if let Some(found) = served {
            let of = found.iter().find(|of| types.contains(&of.as_str()));
            return match of.filter(|_| found.len() == 1) {
                Some(of) => Ok(Some(of.clone())),
                None if found.is_empty() => Ok(None),
                None => Err(other_type(action, types, found)),
            };
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(GraphError::Absent {
        what: "action",
        name: action.to_owned(),
        waited: LOOK * LOOKS,
    })
}

/// What is said of an action of another type than its channel has.
pub(super) fn other_type(
    action: &str,
    types: &[&str],
    found: impl IntoIterator<Item = String>,
) -> GraphError {
    GraphError::OtherType {
        name: action.to_owned(),
        expected: types.join(" or "),
        found: found.into_iter().collect(),
    }
}

/// Cancels every goal of these actions at the same time, those of other clients too. An action that is not there pursues nothing.
/// Returns why some have not taken the cancel.
pub(super) async fn cancel_all(
    graph: &dyn Graph,
    actions: &[ActionChannel],
    patience: Duration,
) -> Vec<GraphError> {
    let cancels = actions
        .iter()
        .map(|action| graph.cancel_all(&action.name, patience));
    let ends = join_all(cancels).await;
    let failed = ends.into_iter().filter_map(Result::err);
    failed
        .filter(|error| !matches!(error, GraphError::Absent { .. }))
        .collect()
}

/// Why a goal that has ended was not reached; `None` where it was.
pub(super) fn shortfall(action: &str, end: &GoalEnd) -> Option<String> {
    let code = end.result["error_code"].as_i64().filter(|code| *code != 0);
    let how = match end.status {
        GoalStatus::Succeeded if code.is_none() => return None,
        GoalStatus::Succeeded => "has ended as reached, with an error",
        GoalStatus::Canceled => "was cancelled by another",
        GoalStatus::Aborted => "was given up by the robot",
        GoalStatus::Unknown => "is not known to the robot any more",
    };
    let text = |key: &str| end.result[key].as_str().filter(|text| !text.is_empty());
    let meant = code.map(|code| match meaning(code) {
        Some(meaning) => format!(": {meaning} (error {code})"),
        None => format!(": error {code}"),
    });
    let reason = text("error_msg").or_else(|| text("error_string"));
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    Some(format!(
        "the goal of {action} {how}{}{reason}",
        meant.unwrap_or_default()
    ))
}

/// What an error code of control_msgs/action/FollowJointTrajectory means. Those of Nav2 are positive.
fn meaning(code: i64) -> Option<&'static str> {
    Some(match code {
        -1 => "the controller takes no such trajectory",
        -2 => {
            "its joints are not those of the controller; compare their names, and that all of them are there"
        }
        -3 => "it was too old when it came; compare the clocks of both machines",
        -4 => {
            "a joint was farther beside its way than path_tolerance: something holds it, or it is too fast for the load"
        }
        -5 => "a joint did not come as close as goal_tolerance in time",
        _ => return None,
    })
}
