//! The goals that a base pursues: each is ended by a stop, also one that a call still waits for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use ros_graph::error::GraphError;
use ros_graph::graph::{Goal, GoalEnd, GoalStatus, Graph};
use serde_json::Value;

use super::channels::GOAL_ENDS;

/// How long a base is given to accept a goal.
const ACCEPTING: Duration = Duration::from_secs(5);

/// The goals that were sent and have not ended.
#[derive(Default)]
pub(super) struct Goals(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// Counts the stops: a goal of an earlier one is not pursued.
    stops: u64,
    goals: Vec<Arc<Goal>>,
}

impl Goals {
    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        // Every change is one insertion, or one removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it was stopped.
    pub(super) fn stops(&self) -> u64 {
        self.lock().stops
    }

    /// Sends a goal. One that is accepted after a stop is cancelled at once.
    ///
    /// # Errors
    /// It was not accepted; or `None` where it was stopped meanwhile.
    pub(super) async fn send(
        &self,
        graph: &dyn Graph,
        (action, goal): (&str, &Value),
        stops: u64,
    ) -> Result<Option<Arc<Goal>>, GraphError> {
        let goal = Arc::new(graph.send_goal(action, goal, ACCEPTING).await?);
        if self.admit(&goal, stops) {
            return Ok(Some(goal));
        }
        goal.cancel(GOAL_ENDS).await?;
        Ok(None)
    }

    fn admit(&self, goal: &Arc<Goal>, stops: u64) -> bool {
        let mut open = self.lock();
        let admitted = open.stops == stops;
        open.goals.extend(admitted.then(|| Arc::clone(goal)));
        admitted
    }

    /// The goal has ended.
    pub(super) fn ended(&self, goal: &Arc<Goal>) {
        self.lock().goals.retain(|open| !Arc::ptr_eq(open, goal));
    }

    /// Takes what has to be ended. What is sent from now on belongs to the time after the stop.
    pub(super) fn stop(&self) -> Vec<Arc<Goal>> {
        let mut open = self.lock();
        open.stops += 1;
        std::mem::take(&mut open.goals)
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
    actions: &[String],
    patience: Duration,
) -> Result<(), GraphError> {
    let ends = join_all(actions.iter().map(|action| graph.cancel_all(action, patience))).await;
    ends.into_iter().try_for_each(|end| match end {
        Err(GraphError::Absent { .. }) => Ok(()),
        other => other,
    })
}

/// Why a goal that has ended was not reached; `None` where it was.
pub(super) fn shortfall(action: &str, end: &GoalEnd) -> Option<String> {
    let how = match end.status {
        GoalStatus::Succeeded => return None,
        GoalStatus::Canceled => "was cancelled by another",
        GoalStatus::Aborted => "was given up by the robot",
        GoalStatus::Unknown => "is not known to the robot any more",
    };
    let text = |key: &str| end.result[key].as_str().filter(|text| !text.is_empty());
    let code = end.result["error_code"].as_u64().filter(|code| *code != 0);
    let why = match (text("error_msg"), code) {
        (Some(text), _) => format!(": {text}"),
        (None, Some(code)) => format!(": error {code}"),
        (None, None) => String::new(),
    };
    Some(format!("the goal of {action} {how}{why}"))
}
