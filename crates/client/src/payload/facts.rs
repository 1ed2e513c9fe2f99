//! The record of the facts: the lines of `facts.jsonl` and of the control socket's stream, one JSON object each.

use std::fmt;
use std::str::FromStr;

use ovos_toolbox_wire::Object;
use serde::{Deserialize, Serialize};

/// The version of the format. Keys are added without a new one.
pub const FACTS_FORMAT: u32 = 1;

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FactLine {
    /// The facts that follow are of this run of the service. It is said at the beginning of each file, of each run and of a
    /// stream.
    Start {
        /// The run.
        start: ServiceStart,
    },
    /// Facts that are missing here: the writer or the reader fell behind, or the disk did not take them.
    Lost {
        /// Their numbers.
        lost: LostFacts,
    },
    /// One step of a call or of the service.
    Fact(RecordedFact),
}

impl FactLine {
    /// Reads a line; `None` if it is none, such as the rest of one that was not written as a whole.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        // By hand: serde's untagged and flattened types do not take numbers of arbitrary precision.
        let mut data: Object = serde_json::from_str(line).ok()?;
        if let Some(start) = data.shift_remove("start") {
            let start = serde_json::from_value(start).ok()?;
            return Some(Self::Start { start });
        }
        if let Some(lost) = data.shift_remove("lost") {
            let lost = serde_json::from_value(lost).ok()?;
            return Some(Self::Lost { lost });
        }
        Some(Self::Fact(RecordedFact {
            number: data.shift_remove("number")?.as_u64()?,
            at_us: data.shift_remove("at_us")?.as_u64()?,
            fact: data.shift_remove("fact")?.as_str()?.to_owned(),
            data,
        }))
    }
}

/// A run of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceStart {
    /// The id of the run; no other run of any service has it.
    pub id: String,
    /// [`FACTS_FORMAT`].
    pub format: u32,
    /// The version of the service.
    pub version: String,
    /// What the wall clock said at the start, in microseconds since 1970.
    pub time_us: i64,
    /// The number of its first fact.
    pub first: u64,
}

/// The numbers of facts that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostFacts {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedFact {
    /// Its number: one more than that of the fact before it, also in another run. Only where the record of the earlier run
    /// was lost numbers come again; they are unique together with the run.
    pub number: u64,
    /// Microseconds since the start of the run, on a monotonic clock.
    pub at_us: u64,
    /// What happened, such as `received`.
    pub fact: String,
    /// What belongs to it.
    #[serde(flatten)]
    pub data: Object,
}

/// The place of a fact in the record, written as `RUN/NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FactPosition {
    /// The run of the service.
    pub start: String,
    /// The number of the fact.
    pub number: u64,
}

/// A text that is not the place of a fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the place of a fact as RUN/NUMBER")]
pub struct NoPosition;

impl fmt::Display for FactPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.start, self.number)
    }
}

impl FromStr for FactPosition {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (start, number) = text.rsplit_once('/').ok_or(NoPosition)?;
        Ok(Self {
            start: start.to_owned(),
            number: number.parse().map_err(|_| NoPosition)?,
        })
    }
}

impl TryFrom<String> for FactPosition {
    type Error = NoPosition;

    fn try_from(text: String) -> Result<Self, NoPosition> {
        text.parse()
    }
}

impl From<FactPosition> for String {
    fn from(position: FactPosition) -> Self {
        position.to_string()
    }
}

/// The record of the facts, in the status of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct FactsStatus {
    /// The newest file; absent if none is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many facts this run of the service could not record.
    pub lost: u64,
    /// Why facts are not recorded at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let start = ServiceStart {
            id: "a".to_owned(),
            format: FACTS_FORMAT,
            version: "0.1.0".to_owned(),
            time_us: 1_700_000_000_000_000,
            first: 18_446_744_073_709_551_615,
        };
        let data = json!({"call": {"number": 3}, "lost": 1.5});
        let mut fact = RecordedFact {
            number: 7,
            at_us: 12,
            fact: "received".to_owned(),
            data: data.as_object().cloned().unwrap(),
        };
        fact.data.shift_remove("lost");
        for line in [
            FactLine::Start { start },
            FactLine::Lost {
                lost: LostFacts { from: 3, to: 9 },
            },
            FactLine::Fact(fact),
        ] {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(FactLine::read(&text), Some(line), "{text}");
        }
        for torn in [
            "",
            "{",
            "7",
            "{\"number\":7,\"at_us\":1}",
            "{\"number\":-1,\"at_us\":1,\"fact\":\"x\"}",
        ] {
            assert_eq!(FactLine::read(torn), None, "{torn}");
        }
        let place = FactPosition {
            start: "a/b".to_owned(),
            number: 5,
        };
        assert_eq!(place.to_string().parse(), Ok(place));
        assert_eq!("a/b".parse::<FactPosition>(), Err(NoPosition));
    }
}
