//! The goals that a robot pursues: each is ended by a stop of its part, also one that a call still waits for.

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

/// The goals that were sent and have not ended.
#[derive(Default)]
pub(super) struct Goals(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// Counts the stops of each part: a goal of an earlier one is not pursued.
    stops: BTreeMap<Subsystem, u64>,
    goals: Vec<(Subsystem, Arc<Goal>)>,
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
        let goal = Arc::new(graph.send_goal(action, goal, ACCEPTING).await?);
        if self.admit(&goal, (on, stops)) {
            return Ok(Some(goal));
        }
        let cancelled = goal.cancel(GOAL_ENDS).await;
        // Whatever keeps it from ending, it may go on.
        cancelled.map_err(|_| GraphError::GoalGoesOn {
            action: action.to_owned(),
            waited: GOAL_ENDS,
        })?;
        Ok(None)
    }

    fn admit(&self, goal: &Arc<Goal>, (on, stops): (Subsystem, u64)) -> bool {
        let mut open = self.lock();
        let admitted = open.stops(on) == stops;
        open.goals.extend(admitted.then(|| (on, Arc::clone(goal))));
        admitted
    }

    /// The goal has ended.
    pub(super) fn ended(&self, goal: &Arc<Goal>) {
        self.lock().goals.retain(|(_, open)| !Arc::ptr_eq(open, goal));
    }

    /// Takes what has to be ended for these parts to stand. What is sent from now on belongs to the time after the stop.
    pub(super) fn stop(&self, parts: &[Subsystem]) -> Vec<Arc<Goal>> {
        let mut open = self.lock();
        for part in parts {
            *open.stops.entry(*part).or_default() += 1;
        }
        let concerns = |on: &Subsystem| *on == Subsystem::All || parts.contains(on);
        let taken = open.goals.extract_if(.., |(on, _)| concerns(on));
        taken.map(|(_, goal)| goal).collect()
    }
}

impl Open {
    fn stops(&self, on: Subsystem) -> u64 {
        let each = on.each().into_iter();
        each.filter_map(|part| self.stops.get(&part)).sum()
    }
}

/// Tells the owner that a stop did not end everything.
pub(super) fn tell(notify: &Notify, error: &GraphError) {
    notify(Notice::Backend {
        state: BackendState::Degraded,
        reason: format!("the stop did not end everything: {error}; press the robot's own button"),
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
        let Ok(found) = graph.entities().await else {
            return Ok(None);
        };
        if let Some(found) = found.actions.into_iter().find(|one| one.name == action) {
            let of = found.types.iter().find(|of| types.contains(&of.as_str()));
            return match of.filter(|_| found.types.len() == 1) {
                Some(of) => Ok(Some(of.clone())),
                None => Err(other_type(action, types, found.types)),
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

/// Cancels goals, and waits until they have ended.
///
/// # Errors
/// One goes on, or its cancel was not taken; the others were cancelled.
pub(super) async fn cancel(goals: &[Arc<Goal>]) -> Result<(), GraphError> {
    let ends = join_all(goals.iter().map(|goal| goal.cancel(GOAL_ENDS))).await;
    ends.into_iter().try_for_each(|end| end.map(drop))
}

/// Cancels every goal of these actions, those of other clients too. An action that is not there pursues nothing.
///
/// # Errors
/// An action is there, and has not taken the cancel; the others have.
pub(super) async fn cancel_all(
    graph: &dyn Graph,
    actions: &[ActionChannel],
    patience: Duration,
) -> Result<(), GraphError> {
    let cancels = actions
        .iter()
        .map(|action| graph.cancel_all(&action.name, patience));
    let ends = join_all(cancels).await;
    ends.into_iter().try_for_each(|end| match end {
        Err(GraphError::Absent { .. }) => Ok(()),
        other => other,
    })
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
    let said = text("error_msg").or_else(|| text("error_string"));
    let said = said.map_or_else(String::new, |said| format!(": {said}"));
    Some(format!(
        "the goal of {action} {how}{}{said}",
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
