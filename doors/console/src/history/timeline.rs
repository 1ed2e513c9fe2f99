//! A call as a timeline in text: a line an action, a bar from its start to its end, wave by wave.

use std::fmt::Write as _;

use serde_json::Value;

use super::query::{CallRow, FactRow};

/// The width of the bars, in characters.
const WIDTH: usize = 40;

/// An action of a call.
struct Action<'a> {
    id: &'a str,
    wave: u64,
    /// From the start of the call, in microseconds.
    start_us: i64,
    end_us: Option<i64>,
    outcome: &'a str,
}

/// Draws a call. Times are from its receipt.
pub(crate) fn draw(call: &CallRow, facts: &[FactRow]) -> String {
    let since = |time_us: i64| time_us - call.started_us;
    let actions = actions(facts, since);
    let last = facts.last().map_or(0, |fact| since(fact.time_us));
    let whole = call.ended_us.map_or(last, since).max(1);
    let name = actions.iter().map(|action| action.id.chars().count()).max();
    let name = name.unwrap_or_default().max("wave 1".len());
    let mut text = String::new();
    let mut wave = 0;
    for action in &actions {
        if action.wave != wave {
            wave = action.wave;
            _ = writeln!(text, "  wave {wave}");
        }
        let (start, end) = (action.start_us, action.end_us.unwrap_or(whole));
        _ = writeln!(
            text,
            "    {:<name$}  {}  {:>8} to {:>8}  {}",
            action.id,
            bar(start, end, whole),
            millis(start),
            action.end_us.map(millis).unwrap_or_default(),
            action.outcome
        );
    }
    for fact in facts {
        if let Some(words) = words_of(fact) {
            _ = writeln!(text, "  {:>8}  {words}", millis(since(fact.time_us)));
        }
    }
    text
}

fn actions<'a>(facts: &'a [FactRow], since: impl Fn(i64) -> i64) -> Vec<Action<'a>> {
    let mut actions: Vec<Action<'a>> = Vec::new();
    for fact in facts {
        let id = fact.data["action"].as_str().unwrap_or_default();
        match fact.fact.as_str() {
            "action_started" => actions.push(Action {
                id,
                wave: fact.data["wave"].as_u64().unwrap_or_default(),
                start_us: since(fact.time_us),
                end_us: None,
                outcome: "still runs",
            }),
            "action_ended" => {
                let outcome = fact.data["outcome"].as_str().unwrap_or_default();
                let end = since(fact.time_us);
                let open = actions
                    .iter_mut()
                    .find(|action| action.id == id && action.end_us.is_none());
                match open {
                    Some(action) => {
                        action.end_us = Some(end);
                        action.outcome = outcome;
                    }
                    // It never began.
                    None => actions.push(Action {
                        id,
                        wave: fact.data["wave"].as_u64().unwrap_or_default(),
                        start_us: end,
                        end_us: Some(end),
                        outcome,
                    }),
                }
            }
            _ => {}
        }
    }
    actions.sort_by_key(|action| action.wave);
    actions
}

/// A bar within the whole of the call; at least one character.
fn bar(start_us: i64, end_us: i64, whole_us: i64) -> String {
    let column = |at: i64| {
        let at = usize::try_from(at.clamp(0, whole_us)).unwrap_or_default();
        at.saturating_mul(WIDTH) / usize::try_from(whole_us).unwrap_or(1).max(1)
    };
    let start = column(start_us).min(WIDTH - 1);
    let end = column(end_us).clamp(start + 1, WIDTH);
    format!(
        "{}{}{}",
        "·".repeat(start),
        "█".repeat(end - start),
        "·".repeat(WIDTH - end)
    )
}

/// What a fact that is no action says; `None` for those that the bars show.
fn words_of(fact: &FactRow) -> Option<String> {
    let at = |key: &str| &fact.data[key];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(match fact.fact.as_str() {
        "received" => format!("received under {}", text(&at("asked")["topic"])),
        "policy" => format!(
            "{} for {} by {}",
            text(at("decision")),
            text(at("principal")),
            text(at("rule"))
        ),
        "confirmed" => format!("confirmed by the {}", text(at("by"))),
        "refused" => format!("refused: {}", text(at("error"))),
        "planned" => format!("planned: {} waves", at("waves").as_array().map_or(0, Vec::len)),
        "waiting" => format!("waits behind {} calls", at("ahead")),
        "cancelled" => format!("cancelled: {}", text(at("cause"))),
        "answered" => {
            let answer = at("answer");
            match answer["error"].as_str() {
                Some(error) => format!("answered: {error}"),
                None => "answered".to_owned(),
            }
        }
        _ => return None,
    })
}

/// A time, in milliseconds with its unit.
pub(crate) fn millis(us: i64) -> String {
    match us {
        0..10_000 => format!("{}.{} ms", us / 1000, us % 1000 / 100),
        _ => format!("{} ms", us / 1000),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fact(number: i64, time_us: i64, fact: &str, data: Value) -> FactRow {
        FactRow {
            number,
            time_us,
            fact: fact.to_owned(),
            data,
        }
    }

    #[test]
    fn actions_are_drawn_wave_by_wave_and_what_never_began_or_never_ended_too() {
        let call = CallRow {
            run: 1,
            call: 1,
            call_id: "c".to_owned(),
            toolbox_id: "robot".to_owned(),
            tool: "wave".to_owned(),
            effect: "motion".to_owned(),
            source: None,
            session_id: None,
            principal: None,
            decision: None,
            request: Value::Null,
            started_us: 1_000_000,
            ended_us: Some(1_100_000),
            ok: Some(false),
            outcome: None,
            result: Value::Null,
            error: None,
        };
        let facts = [
            fact(1, 1_000_000, "received", json!({"asked": {"topic": "t"}})),
            fact(
                2,
                1_000_000,
                "action_started",
                json!({"action": "left", "wave": 1}),
            ),
            fact(
                3,
                1_000_000,
                "action_started",
                json!({"action": "right", "wave": 1}),
            ),
            fact(
                4,
                1_050_000,
                "action_ended",
                json!({"action": "left", "wave": 1, "outcome": "failed"}),
            ),
            fact(
                5,
                1_050_000,
                "action_ended",
                json!({"action": "home", "wave": 2, "outcome": "skipped"}),
            ),
            fact(
                6,
                1_100_000,
                "answered",
                json!({"answer": {"error": "Failed: no"}}),
            ),
        ];
        let expected = format!(
            "  wave 1\n    left    {}{}    0.0 ms to    50 ms  failed\n    right   {}    0.0 ms to           still runs\n  \
             wave 2\n    home    {}█{}     50 ms to    50 ms  skipped\n    0.0 ms  received under t\n    100 ms  answered: \
             Failed: no\n",
            "█".repeat(20),
            "·".repeat(20),
            "█".repeat(40),
            "·".repeat(20),
            "·".repeat(19),
        );
        assert_eq!(draw(&call, &facts), expected);
    }
}
