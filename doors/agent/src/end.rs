//! Why a run ended: an enum with a word, an exit code, and whether the agent may still send commands. Pure.

use serde::{Deserialize, Serialize};

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "why", rename_all = "snake_case")]
pub(crate) enum End {
    /// The model says that the goal is reached, and what it did.
    Done(String),
    /// The model says that the goal cannot be reached, and why.
    GaveUp(String),
    /// An emergency stop, or a toolbox that was latched during the run.
    Latched(String),
    /// The user said "stop": `ovos.stop` on the bus.
    UserStop,
    /// A person at the agent ended the run: a key, Ctrl-C or `ovos.tools.agent.cancel`.
    Operator(String),
    /// A person has taken over the machine.
    Takeover(String),
    /// The model cannot be reached.
    ModelUnreachable(String),
    /// The model did not answer in time.
    ModelTimeout(String),
    /// The endpoint refuses the requests.
    ModelRefused(String),
    /// The endpoint's answer is not a chat completion.
    ModelUnreadable(String),
    /// The service or the bus is gone.
    Service(String),
    /// The replayed record has no further answer.
    RecordEnded,
    /// A budget is spent.
    #[serde(untagged)]
    Budget(BudgetKind),
}

/// The budget that is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(crate) enum BudgetKind {
    /// The number of the model's answers.
    Steps,
    /// The number of tool calls.
    Calls,
    /// The time of the run.
    Time,
    /// Tokens of the model.
    Tokens,
    /// Failures in a row.
    Failures,
    /// The same call too often in a row.
    Repeats,
    /// Degrees of turning.
    Rotation,
    /// Metres of moving forward.
    Distance,
    /// The battery is below its floor, or its charge is not known any more.
    Battery,
}

impl BudgetKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Calls => "calls",
            Self::Time => "time",
            Self::Tokens => "tokens",
            Self::Failures => "failures",
            Self::Repeats => "repeats",
            Self::Rotation => "rotation",
            Self::Distance => "distance",
            Self::Battery => "battery",
        }
    }
}

impl End {
    /// The word for it in records and on the bus.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::GaveUp(_) => "gave_up",
            Self::Budget(spent) => spent.as_str(),
            Self::Latched(_) => "latched",
            Self::UserStop => "user_stop",
            Self::Operator(_) => "operator",
            Self::Takeover(_) => "takeover",
            Self::ModelUnreachable(_) => "model_unreachable",
            Self::ModelTimeout(_) => "model_timeout",
            Self::ModelRefused(_) => "model_refused",
            Self::ModelUnreadable(_) => "model_unreadable",
            Self::Service(_) => "service",
            Self::RecordEnded => "record_ended",
        }
    }

    /// Returns the reason for a person.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Done(summary) => summary.clone(),
            Self::GaveUp(why) => format!("the model gave up: {why}"),
            Self::Budget(spent) => match spent {
                BudgetKind::Steps => "all steps of the run are used (steps)".to_owned(),
                BudgetKind::Calls => "all calls of the run are used (calls)".to_owned(),
                BudgetKind::Time => "the time of the run is up (time_ms)".to_owned(),
                BudgetKind::Tokens => "all tokens of the run are used (tokens)".to_owned(),
                BudgetKind::Failures => "too many failures in a row".to_owned(),
                BudgetKind::Repeats => "the model made the same call again and again".to_owned(),
                BudgetKind::Rotation => "the turning budget is used up (rotation_deg)".to_owned(),
                BudgetKind::Distance => "the distance budget is used up (forward_m)".to_owned(),
                BudgetKind::Battery => "the battery is below the minimum of the run (battery_pct), or its charge is not known any more".to_owned(),
            },
            Self::Latched(why) => format!("emergency stop: {why}"),
            Self::UserStop => "the user said stop".to_owned(),
            Self::Operator(how) => format!("ended by the operator: {how}"),
            Self::Takeover(how) => format!("a person has taken over: {how}"),
            Self::ModelUnreachable(why) => {
                format!("cannot reach the model: {why}; start it, or set --url or `service.doors.agent.url`")
            }
            Self::ModelTimeout(why) => format!("the model did not answer: {why}"),
            Self::ModelRefused(why) => format!("the endpoint refuses the request: {why}"),
            Self::ModelUnreadable(why) => format!("the endpoint's answer cannot be read: {why}"),
            Self::Service(why) => format!("lost the service: {why}"),
            Self::RecordEnded => "the replayed record has no further answers".to_owned(),
        }
    }

    /// The exit code of the command: 0 done, 1 given up, 10 to 19 a budget, 20 to 29 people and safety, 30 to 39 the model, 3 the
    /// service.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Done(_) | Self::RecordEnded => 0,
            Self::GaveUp(_) => 1,
            Self::Service(_) => 3,
            Self::Budget(spent) => match spent {
                BudgetKind::Steps => 10,
                BudgetKind::Calls => 11,
                BudgetKind::Time => 12,
                BudgetKind::Tokens => 13,
                BudgetKind::Failures => 14,
                BudgetKind::Repeats => 15,
                BudgetKind::Rotation => 16,
                BudgetKind::Distance => 17,
                BudgetKind::Battery => 18,
            },
            Self::Latched(_) => 20,
            Self::UserStop => 21,
            Self::Operator(_) => 22,
            Self::Takeover(_) => 23,
            Self::ModelUnreachable(_) => 30,
            Self::ModelTimeout(_) => 31,
            Self::ModelRefused(_) => 32,
            Self::ModelUnreadable(_) => 33,
        }
    }

    /// Whether people or an emergency stop ended the run. After that the agent sends no commands: people control what moves.
    pub(crate) fn is_of_people(&self) -> bool {
        matches!(
            self,
            Self::Latched(_) | Self::UserStop | Self::Operator(_) | Self::Takeover(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> Vec<End> {
        let spent = [
            BudgetKind::Steps,
            BudgetKind::Calls,
            BudgetKind::Time,
            BudgetKind::Tokens,
            BudgetKind::Failures,
            BudgetKind::Repeats,
            BudgetKind::Rotation,
            BudgetKind::Distance,
            BudgetKind::Battery,
        ];
        let why = || "why".to_owned();
        let mut ends: Vec<End> = spent.into_iter().map(End::Budget).collect();
        ends.extend([
            End::Done(why()),
            End::GaveUp(why()),
            End::Latched(why()),
            End::UserStop,
            End::Operator(why()),
            End::Takeover(why()),
            End::ModelUnreachable(why()),
            End::ModelTimeout(why()),
            End::ModelRefused(why()),
            End::ModelUnreadable(why()),
            End::Service(why()),
            End::RecordEnded,
        ]);
        ends
    }

    #[test]
    fn every_end_has_a_word_and_an_exit_code_of_its_own() {
        let ends = all();
        let words: BTreeSet<&str> = ends.iter().map(End::as_str).collect();
        assert_eq!(words.len(), ends.len());
        // Neither `Done` nor the end of a record is a failure.
        let codes: BTreeSet<u8> = ends.iter().map(End::exit_code).collect();
        assert_eq!(codes.len(), ends.len() - 1);
    }

    #[test]
    fn records_name_an_end_by_its_word() {
        for end in all() {
            let written = serde_json::to_value(&end).expect("JSON");
            assert_eq!(written["reason"], end.as_str(), "{written}");
            let read: End = serde_json::from_value(written).expect("an end");
            assert_eq!(read, end);
        }
    }
}
