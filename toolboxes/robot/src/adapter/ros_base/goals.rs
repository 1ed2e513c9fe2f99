//! The goals that a robot pursues: each is ended by a stop of its part, also one that a call still waits for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ros_graph::error::GraphError;
use ros_graph::goals::{Goals as OpenGoals, Limits, OpenGoal};
use ros_graph::graph::{Goal, GoalEnd, GoalStatus, Graph};
use serde_json::Value;

use crate::adapter::{BackendState, Notice, Notify};
use crate::subsystem::Subsystem;

/// How long a robot is given to accept a goal.
const ACCEPTING: Duration = Duration::from_secs(5);
/// How long a goal is given to end after its cancel.
pub(super) const GOAL_ENDS: Duration = Duration::from_millis(500);
/// How long an action is looked for before a goal is sent to it, and how often.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(100);

/// The goals that may still move a part, and how often each part was stopped.
#[derive(Default)]
pub(super) struct Goals {
    pub(super) open: OpenGoals<Subsystem>,
    /// A goal of the time before a stop of its part is not pursued.
    stops: Mutex<BTreeMap<Subsystem, u64>>,
}

impl Goals {
    /// How often a part was stopped.
    pub(super) fn stops(&self, on: Subsystem) -> u64 {
        let stops = self.stops.lock();
        let each = on.each().into_iter();
        each.filter_map(|part| stops.get(&part)).sum()
    }

    /// Sends a goal. One that is accepted after a stop is cancelled at once.
    ///
    /// # Errors
    /// It was not accepted, or [`GraphError::GoalGoesOn`] where it may go on; `None` where it was stopped meanwhile.
    pub(super) async fn send(
        &self,
        graph: &dyn Graph,
        goal: (&str, &Value),
        (on, stops): (Subsystem, u64),
    ) -> Result<Option<Arc<Goal>>, GraphError> {
        let limits = Limits {
            accept: ACCEPTING,
            end: GOAL_ENDS,
        };
        let is_stopped = || self.stops(on) != stops;
        self.open.send(graph, goal, on, limits, is_stopped).await
    }

    /// What has to be ended for these parts to stand, in their order. What is sent from now on belongs to the time after the stop.
    pub(super) fn stop(&self, parts: &[Subsystem]) -> Vec<OpenGoal> {
        let mut stops = self.stops.lock();
        for part in parts {
            *stops.entry(*part).or_default() += 1;
        }
        drop(stops);
        self.open.of(|on| match on {
            Subsystem::All => Some(0),
            on => parts.iter().position(|part| part == on),
        })
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

/// Why a goal that has ended was not reached; `None` where it was.
pub(super) fn shortfall(action: &str, end: &GoalEnd) -> Option<String> {
    let code = end.result["error_code"].as_i64().filter(|code| *code != 0);
    let how = match end.status {
        GoalStatus::Succeeded if code.is_none() => return None,
        GoalStatus::Succeeded => "ended with success, but also with an error",
        GoalStatus::Canceled => "was cancelled by another program",
        GoalStatus::Aborted => "was aborted by the robot",
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
            "a joint left its path by more than path_tolerance: something blocks it, or the load is too heavy for this speed"
        }
        -5 => "a joint did not come as close as goal_tolerance in time",
        _ => return None,
    })
}
