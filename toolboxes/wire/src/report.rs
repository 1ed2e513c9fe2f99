//! What happened to each action of a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Conclusion, Failure, FailureKind, Object};

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The toolbox reported success.
    Completed,
    /// The toolbox reported an error, refused the start, or died.
    Failed,
    /// Its time was up, and the toolbox confirmed that it ended.
    TimedOut,
    /// The call was cancelled, stopped or pre-empted, and the toolbox confirmed that the action ended or it never
    /// started.
    Cancelled,
    /// Not started, because an earlier action did not complete.
    Skipped,
    /// Its time was up or it was cancelled, and the toolbox did not confirm that within the grace period.
    Abandoned,
}

impl Outcome {
    /// The word used on the bus.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::Abandoned => "abandoned",
        }
    }
}

/// How a call ended as a whole: the worst of its actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Every action completed.
    Completed,
    /// An action failed.
    Failed,
    /// The time of an action or of the call was up.
    TimedOut,
    /// A cancel request ended the call, or a safe call took its place.
    Cancelled,
    /// An emergency stop ended the call.
    Stopped,
}

impl CallOutcome {
    /// The outcome of a call that nothing from outside ended: the worst of its actions.
    #[must_use]
    pub fn of(actions: &[ActionReport]) -> Self {
        let any = |outcome| actions.iter().any(|line| line.outcome == outcome);
        if actions.iter().all(|line| line.outcome == Outcome::Completed) {
            Self::Completed
        } else if any(Outcome::Failed) {
            Self::Failed
        } else if any(Outcome::TimedOut) || any(Outcome::Abandoned) {
            Self::TimedOut
        } else if any(Outcome::Cancelled) {
            Self::Cancelled
        } else {
            Self::Failed
        }
    }
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionReport {
    /// Unique in its plan.
    pub id: String,
    /// What to do.
    pub name: String,
    /// What it uses.
    pub subsystems: Vec<String>,
    /// Its wave, counted from 1.
    pub wave: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// From start to end, on a monotonic clock; 0 if it never started.
    pub duration_ms: u64,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What happened to a call: exactly one entry for each action of its plan, in the plan's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// How the call ended.
    pub outcome: CallOutcome,
    /// From the start of the first wave to the end of the last.
    pub duration_ms: u64,
    /// One entry for each action.
    pub actions: Vec<ActionReport>,
}

impl Report {
    /// The result of a call whose toolbox leaves it to the service: the output of the single action, or the outputs by action
    /// id. If the call did not complete, the error of the first action that neither completed nor was skipped.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        if self.outcome != CallOutcome::Completed {
            let worst = self
                .actions
                .iter()
                .find(|line| !matches!(line.outcome, Outcome::Completed | Outcome::Skipped))
                .and_then(|line| line.error.clone());
            return Conclusion::Error(
                worst
                    .unwrap_or_else(|| Failure::new(FailureKind::RuntimeError, "an action did not complete")),
            );
        }
        let output = |line: &ActionReport| {
            line.output
                .clone()
                .unwrap_or_else(|| Value::Object(Object::new()))
        };
        match self.actions.as_slice() {
            [only] => Conclusion::Output(output(only)),
            many => Conclusion::Output(Value::Object(
                many.iter().map(|line| (line.id.clone(), output(line))).collect(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_ends_and_concludes_as_its_actions_do() {
        let line = |id: &str, outcome: Outcome| ActionReport {
            id: id.to_owned(),
            name: id.to_owned(),
            subsystems: Vec::new(),
            wave: 1,
            outcome,
            duration_ms: 1,
            output: (outcome == Outcome::Completed && id != "mute").then(|| json!({ "of": id })),
            error: (outcome != Outcome::Completed).then(|| Failure::new("ToolError", id)),
        };
        let error = |id: &str| Conclusion::Error(Failure::new("ToolError", id));
        let (first, second) = (
            line("first", Outcome::Completed),
            line("second", Outcome::Completed),
        );
        for (actions, outcome, expected) in [
            (
                vec![first.clone()],
                CallOutcome::Completed,
                Conclusion::Output(json!({"of": "first"})),
            ),
            (
                vec![first.clone(), second, line("mute", Outcome::Completed)],
                CallOutcome::Completed,
                Conclusion::Output(json!({"first": {"of": "first"}, "second": {"of": "second"}, "mute": {}})),
            ),
            (
                vec![
                    first.clone(),
                    line("skipped", Outcome::Skipped),
                    line("late", Outcome::TimedOut),
                    line("broken", Outcome::Failed),
                ],
                CallOutcome::Failed,
                error("late"),
            ),
            (
                vec![
                    line("gone", Outcome::Abandoned),
                    line("ended", Outcome::Cancelled),
                ],
                CallOutcome::TimedOut,
                error("gone"),
            ),
            (
                vec![first, line("ended", Outcome::Cancelled)],
                CallOutcome::Cancelled,
                error("ended"),
            ),
        ] {
            let report = Report {
                outcome: CallOutcome::of(&actions),
                duration_ms: 1,
                actions,
            };
            assert_eq!((report.outcome, report.conclusion()), (outcome, expected));
        }
    }
}
