//! When a schedule is due. Pure: the time and the zone are arguments. Read [`Timing`].

use chrono::{DateTime, TimeZone};
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use ovos_toolbox_wire::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A time on the machine's clock, in milliseconds since 1970 in UTC.
pub(crate) type Millis = i64;

/// How often a schedule may fire, in milliseconds, where no operator allows more.
pub(crate) const FASTEST: Millis = 60_000;

/// The same for an operator.
pub(crate) const FASTEST_OF_OPERATOR: Millis = 1_000;

/// How late a schedule may still fire, in milliseconds.
pub(crate) const LATE: Millis = 60_000;

/// The farthest time that is accepted, in milliseconds from now: ten years.
const FARTHEST: Millis = 10 * 366 * 86_400_000;

/// The keys of a request that say when, of which it has exactly one.
const KEYS: &str = "`at` (RFC 3339, or seconds since 1970), `in_seconds`, `every_seconds`, `cron` (five fields, local time) or \
`on_event` ({\"kind\", \"toolbox_id\"?})";

/// When a schedule is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Timing {
    /// Once.
    At { at_ms: Millis },
    /// Again and again, counted from a time.
    Every { every_ms: Millis, from_ms: Millis },
    /// As a cron pattern says, in local time.
    Cron { pattern: String },
    /// When a toolbox reports an event of this kind, but not more often than that.
    Event {
        kind: String,
        toolbox_id: Option<String>,
        apart_ms: Millis,
    },
}

impl Timing {
    /// The farthest time that is accepted.
    pub(crate) fn farthest(now: Millis) -> Millis {
        now.saturating_add(FARTHEST)
    }

    /// Reads when a request wants its schedule to be due.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub(crate) fn read(data: &Object, now: Millis, fastest: Millis) -> Result<Self, String> {
        let given = ["at", "in_seconds", "every_seconds", "cron", "on_event"];
        let mut given = given
            .into_iter()
            .filter_map(|key| Some((key, data.get(key).filter(|value| !value.is_null())?)));
        let (Some((key, value)), None) = (given.next(), given.next()) else {
            return Err(format!("expected exactly one of {KEYS}"));
        };
        match key {
            "at" => {
                let at_ms = instant(value)
                    .ok_or("at: expected a time such as 2026-12-24T18:00:00+01:00, or seconds since 1970")?;
                once(at_ms, now)
            }
            "in_seconds" => {
                let wait = millis(value).ok_or("in_seconds: expected a number of seconds from 0")?;
                once(now.saturating_add(wait), now)
            }
            "every_seconds" => {
                let every_ms = millis(value).filter(|every| (fastest..=FARTHEST).contains(every));
                let every_ms = every_ms
                    .ok_or_else(|| format!("every_seconds: expected a number from {} on", fastest / 1000))?;
                Ok(Self::Every {
                    every_ms,
                    from_ms: now,
                })
            }
            "cron" => {
                let pattern = value
                    .as_str()
                    .ok_or("cron: expected a text such as \"30 7 * * MON-FRI\"")?;
                parsed(pattern).map_err(|why| {
                    format!("cron: {why}; expected five fields, such as \"30 7 * * MON-FRI\"")
                })?;
                Ok(Self::Cron {
                    pattern: pattern.to_owned(),
                })
            }
            _ => {
                let kind = value
                    .get("kind")
                    .and_then(Value::as_str)
                    .filter(|kind| !kind.is_empty());
                let kind = kind.ok_or(
                    "on_event: expected {\"kind\"}, the kind of an event, and optionally \"toolbox_id\"",
                )?;
                Ok(Self::Event {
                    kind: kind.to_owned(),
                    toolbox_id: value.get("toolbox_id").and_then(Value::as_str).map(str::to_owned),
                    apart_ms: fastest,
                })
            }
        }
    }

    /// The first time after `after` at which it is due. `None` if there is none, or if it is due on an event.
    pub(crate) fn next<Z: TimeZone>(&self, after: Millis, zone: &Z) -> Option<Millis> {
        match self {
            Self::At { at_ms } => (*at_ms > after).then_some(*at_ms),
            Self::Every { every_ms, from_ms } => {
                let periods = after.saturating_sub(*from_ms).div_euclid(*every_ms).max(0);
                from_ms.checked_add(every_ms.checked_mul(periods + 1)?)
            }
            Self::Cron { pattern } => {
                let cron = parsed(pattern).ok()?;
                let after: DateTime<Z> = zone.timestamp_millis_opt(after).single()?;
                // A time that the clock shows twice, when summer ends, is one occurrence.
                cron.find_next_occurrence(&after, false)
                    .ok()
                    .map(|next| next.timestamp_millis())
            }
            Self::Event { .. } => None,
        }
    }

    /// The next `count` times.
    pub(crate) fn upcoming<Z: TimeZone>(&self, after: Millis, zone: &Z, count: usize) -> Vec<Millis> {
        std::iter::successors(self.next(after, zone), |last| self.next(*last, zone))
            .take(count)
            .collect()
    }

    /// The same after the clock was put back to `now`, so that nothing is due later than it would be from there. What was due last
    /// is not due again within the hour that a clock is put back by at most where people do it.
    pub(crate) fn after_step_back<Z: TimeZone>(
        &mut self,
        now: Millis,
        last: Option<Millis>,
        zone: &Z,
    ) -> Option<Millis> {
        if let Self::Every { from_ms, .. } = self {
            *from_ms = now;
        }
        let last = last
            .filter(|last| last.saturating_sub(now) <= 3_600_000)
            .unwrap_or(now);
        match self {
            Self::At { at_ms } => Some(*at_ms),
            Self::Cron { .. } => self.next(last.max(now), zone),
            _ => self.next(now, zone),
        }
    }
}

/// A cron pattern with five fields.
fn parsed(pattern: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).build();
    parser.parse(pattern).map_err(|error| error.to_string())
}

fn once(at_ms: Millis, now: Millis) -> Result<Timing, String> {
    if at_ms < now || at_ms.saturating_sub(now) > FARTHEST {
        return Err("expected a time that is not past, within ten years".to_owned());
    }
    Ok(Timing::At { at_ms })
}

fn instant(value: &Value) -> Option<Millis> {
    match value {
        Value::String(text) => Some(DateTime::parse_from_rfc3339(text.trim()).ok()?.timestamp_millis()),
        other => millis(other),
    }
}

/// Seconds as milliseconds.
#[allow(clippy::cast_possible_truncation, reason = "it is in the range")]
pub(crate) fn millis(value: &Value) -> Option<Millis> {
    let millis = value.as_f64()? * 1000.0;
    (0.0..=1e15).contains(&millis).then(|| millis.round() as Millis)
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, Utc};
    use serde_json::json;

    use super::*;

    const NOW: Millis = 1_700_000_000_000;

    fn read(data: Value) -> Result<Timing, String> {
        let Value::Object(data) = data else {
            panic!("{data}")
        };
        Timing::read(&data, NOW, FASTEST)
    }

    #[test]
    fn a_request_says_in_one_way_when() {
        for (data, expected) in [
            (json!({"at": "2023-11-15T00:00:00+01:00"}), NOW + 2_800_000),
            (json!({"at": 1_700_000_001}), NOW + 1_000),
            (json!({"in_seconds": 600}), NOW + 600_000),
            (json!({"every_seconds": 60}), NOW + 60_000),
            (json!({"cron": "0 * * * *"}), NOW + 2_800_000),
            (json!({"cron": "@hourly"}), NOW + 2_800_000),
        ] {
            let when = read(data.clone()).unwrap_or_else(|why| panic!("{data}: {why}"));
            assert_eq!(when.next(NOW, &Utc), Some(expected), "{data}");
        }
        for (data, why) in [
            (json!({}), "exactly one"),
            (json!({"at": 1_700_000_001, "cron": "0 * * * *"}), "exactly one"),
            (json!({"at": "tomorrow"}), "at: expected a time"),
            (json!({"at": "2020-01-01T00:00:00Z"}), "not past"),
            (json!({"in_seconds": -1}), "in_seconds: expected"),
            (json!({"in_seconds": 1e12}), "ten years"),
            (json!({"every_seconds": 59.9}), "from 60 on"),
            (json!({"cron": "* * * * * *"}), "five fields"),
            (json!({"cron": "61 * * * *"}), "five fields"),
            (json!({"cron": 5}), "cron: expected"),
            (json!({"on_event": {}}), "on_event: expected"),
        ] {
            let refused = read(data.clone()).expect_err(&data.to_string());
            assert!(refused.contains(why), "{data}: {refused}");
        }
    }

    #[test]
    fn what_is_due_again_and_again_is_due_after_each_time() {
        let every = read(json!({"every_seconds": 90})).expect("a schedule");
        let from = [NOW - 1, NOW, NOW + 89_999, NOW + 90_000, NOW + 1_000_000];
        let next = from.map(|after| every.next(after, &Utc).expect("a time") - NOW);
        assert_eq!(next, [90_000, 90_000, 90_000, 180_000, 1_080_000]);
        let zone = FixedOffset::east_opt(3_600).expect("a zone");
        let cron = read(json!({"cron": "30 7 * * MON-FRI"})).expect("a schedule");
        let upcoming = cron.upcoming(NOW, &zone, 6);
        // 2023-11-15 was a Wednesday.
        let first = DateTime::parse_from_rfc3339("2023-11-15T07:30:00+01:00").expect("a time");
        let days = [0, 1, 2, 5, 6, 7].map(|day| first.timestamp_millis() + day * 86_400_000);
        assert_eq!(upcoming, days);
        assert_eq!(
            read(json!({"on_event": {"kind": "fire"}}))
                .expect("one")
                .next(NOW, &Utc),
            None
        );
    }
}
