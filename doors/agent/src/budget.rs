//! The budgets of a run and what it has used of them. Pure.

use std::ops::AddAssign;
use std::time::Duration;

use config::AgentBudgets;
use serde_json::{Value, json};

use crate::end::{BudgetKind, End};

/// What a run has used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) steps: u32,
    pub(crate) calls: u32,
    pub(crate) tokens: u64,
    /// The number of failures in a row.
    pub(crate) failures: u32,
    /// How often the last call was made in a row.
    pub(crate) repeats: u32,
    last_call: Option<(String, String)>,
    pub(crate) rotation_deg: f64,
    pub(crate) forward_m: f64,
}

impl Usage {
    /// Counts a call before it is made, and whether it is the same as the last one.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) {
        self.calls += 1;
        // A different order of keys does not make a different call.
        let call = (tool.to_owned(), canonical(arguments));
        if self.last_call.as_ref() == Some(&call) {
            self.repeats += 1;
        } else {
            self.repeats = 1;
            self.last_call = Some(call);
        }
    }

    /// How often the call would have been made in a row if it were made now.
    pub(crate) fn would_repeat(&self, tool: &str, arguments: &Value) -> u32 {
        let same = self
            .last_call
            .as_ref()
            .is_some_and(|(last, with)| last == tool && *with == canonical(arguments));
        if same { self.repeats + 1 } else { 1 }
    }

    /// Counts the outcome of a call or of an answer.
    pub(crate) fn count_outcome(&mut self, failed: bool) {
        self.failures = if failed { self.failures + 1 } else { 0 };
    }

    /// Returns the budget that has no room for another step.
    pub(crate) fn spent(&self, budgets: &AgentBudgets, elapsed: Duration) -> Option<End> {
        let spent = if elapsed >= budgets.time {
            BudgetKind::Time
        } else if self.failures >= budgets.failures {
            BudgetKind::Failures
        } else if self.steps >= budgets.steps {
            BudgetKind::Steps
        } else if self.calls >= budgets.calls {
            BudgetKind::Calls
        } else if self.tokens >= budgets.tokens {
            BudgetKind::Tokens
        } else {
            return None;
        };
        Some(End::Budget(spent))
    }

    /// Decides whether the physical budgets permit a call that moves something and asks for this much.
    pub(crate) fn motion(&self, budgets: &AgentBudgets, charge: Charge, battery: Battery) -> Verdict {
        let is_low = match battery {
            Battery::NeverKnown => false,
            Battery::Pct(pct) => pct < budgets.battery_pct,
            Battery::Lost => true,
        };
        if is_low {
            return Verdict::End(End::Budget(BudgetKind::Battery));
        }
        for (amount, used, most, unit, spent) in [
            (
                charge.deg,
                self.rotation_deg,
                budgets.rotation_deg,
                "degrees",
                BudgetKind::Rotation,
            ),
            (
                charge.forward_m,
                self.forward_m,
                budgets.forward_m,
                "metres forward",
                BudgetKind::Distance,
            ),
        ] {
            let left = most - used;
            // The arguments do not always say how far a tool turns or moves. So once a budget is used up, nothing moves.
            if left <= 1e-6 && (amount > 0.0 || used > 0.0) {
                return Verdict::End(End::Budget(spent));
            }
            if amount > left + 1e-6 {
                return Verdict::Refuse(format!(
                    "it needs {} {unit}, but only {} of {} are left in this run",
                    short(amount),
                    short(left),
                    short(most)
                ));
            }
        }
        Verdict::Go
    }

    /// Returns the physical budget that the measured motion exceeds.
    pub(crate) fn overdrawn(&self, budgets: &AgentBudgets) -> Option<End> {
        if self.rotation_deg > budgets.rotation_deg + 1e-6 {
            return Some(End::Budget(BudgetKind::Rotation));
        }
        (self.forward_m > budgets.forward_m + 1e-6).then_some(End::Budget(BudgetKind::Distance))
    }

    /// Returns what is left, for the record.
    pub(crate) fn remaining(&self, budgets: &AgentBudgets, elapsed: Duration) -> Value {
        json!({
            "steps": budgets.steps.saturating_sub(self.steps),
            "calls": budgets.calls.saturating_sub(self.calls),
            "time_ms": millis(budgets.time.saturating_sub(elapsed)),
            "tokens": budgets.tokens.saturating_sub(self.tokens),
            "failures": budgets.failures.saturating_sub(self.failures),
            "rotation_deg": rounded(budgets.rotation_deg - self.rotation_deg),
            "forward_m": rounded(budgets.forward_m - self.forward_m),
        })
    }
}

/// The knowledge about a battery.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Battery {
    /// The machine has not reported a battery; it may have none.
    #[default]
    NeverKnown,
    /// The charge, in percent.
    Pct(f64),
    /// The charge was known, and is no longer known.
    Lost,
}

/// The amount that a call asks of the physical budgets, or has used of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Charge {
    pub(crate) deg: f64,
    pub(crate) forward_m: f64,
}

/// Whether a call that moves something may be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It may be made.
    Go,
    /// It asks for more than is left. The model gets this text.
    Refuse(String),
    /// Nothing is left, so the run ends.
    End(End),
}

impl Charge {
    /// Returns the most that the arguments of a call ask for; `schema` has their defaults. Arguments are recognised by their names
    /// and units: `deg` and `degrees` turn, `step_deg` turns `max_steps` times, and `cm` is forward distance if the tool moves
    /// forward. With a `direction`, `distance` is metres, or radians if the direction is a rotation, and `speed` times `duration`
    /// is metres, or half a radian a second. Motion beyond the arguments is charged from the result of the tool.
    ///
    /// # Errors
    /// An argument that is charged is not a number: how the service would read it is unknown.
    pub(crate) fn of_call(tool: &str, arguments: &Value, schema: &Value) -> Result<Self, String> {
        let value_of = |key: &str| {
            let default = || schema.get("properties")?.get(key)?.get("default");
            arguments.get(key).or_else(default)
        };
        let number = |key: &str| value_of(key).map_or(Ok(0.0), |value| size(key, value));
        let mut charge = Self::default();
        let direction = value_of("direction").map(|direction| {
            let word = direction.as_str().unwrap_or_default();
            word.trim().to_ascii_lowercase()
        });
        let is_straight = matches!(
            direction.as_deref(),
            Some("forward" | "backward" | "left" | "right" | "up" | "down")
        );
        if !tool.contains("set_yaw") {
            charge.deg = number("deg")? + number("step_deg")? * number("max_steps")?;
            // A default of what only turns take.
            if !is_straight {
                charge.deg += number("degrees")?;
            }
        }
        if tool.contains("forward") {
            charge.forward_m = number("cm")? / 100.0 + number("m")? + number("metres")?;
        }
        if let Some(direction) = direction {
            match direction.as_str() {
                "backward" | "left" | "right" | "up" | "down" => {}
                // The direction in which something turns.
                "clockwise" | "counterclockwise" | "cw" | "ccw" => {}
                "rotate_left" | "rotate_right" => {
                    charge.deg += (TURNING * number("duration")?).to_degrees();
                }
                // Forward, and unknown directions.
                _ => charge.forward_m += number("distance")? + number("speed")? * number("duration")?,
            }
        }
        Ok(charge)
    }
}

impl AddAssign<Charge> for Usage {
    fn add_assign(&mut self, charge: Charge) {
        self.rotation_deg += charge.deg;
        self.forward_m += charge.forward_m;
    }
}

/// How fast the robot toolbox turns for `walk`, in radians a second (its `toolboxes/robot/src/tools/locomotion.rs`).
const TURNING: f64 = 0.5;

/// Returns the absolute value of a number, which may be text: services read such texts as numbers.
fn size(key: &str, value: &Value) -> Result<f64, String> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let number = number.filter(|number: &f64| number.is_finite());
    number
        .map(f64::abs)
        .ok_or_else(|| format!("`{key}` is charged to a budget: expected a number, found {value}"))
}

/// JSON with sorted keys.
pub(crate) fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(object) => {
                let mut keys: Vec<&String> = object.keys().collect();
                keys.sort_unstable();
                keys.into_iter()
                    .map(|key| (key.clone(), sorted(&object[key.as_str()])))
                    .collect()
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn short(number: f64) -> String {
    rounded(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets() -> AgentBudgets {
        AgentBudgets {
            steps: 3,
            calls: 4,
            tokens: 100,
            failures: 2,
            ..AgentBudgets::default()
        }
    }

    #[test]
    fn each_budget_ends_a_run_by_its_own_name() {
        let minute = Duration::from_secs(60);
        for (used, elapsed, expected) in [
            (Usage::default(), minute, None),
            (
                Usage {
                    steps: 3,
                    ..Usage::default()
                },
                minute,
                Some(BudgetKind::Steps),
            ),
            (
                Usage {
                    calls: 4,
                    ..Usage::default()
                },
                minute,
                Some(BudgetKind::Calls),
            ),
            (
                Usage {
                    tokens: 100,
                    ..Usage::default()
                },
                minute,
                Some(BudgetKind::Tokens),
            ),
            (
                Usage {
                    failures: 2,
                    ..Usage::default()
                },
                minute,
                Some(BudgetKind::Failures),
            ),
            (Usage::default(), 10 * minute, Some(BudgetKind::Time)),
        ] {
            assert_eq!(
                used.spent(&budgets(), elapsed),
                expected.map(End::Budget),
                "{used:?}"
            );
        }
    }

    #[test]
    fn motion_is_checked_against_what_is_left_before_it_begins() {
        let used = Usage {
            rotation_deg: 300.0,
            forward_m: 4.0,
            ..Usage::default()
        };
        let schema = json!({"properties": {"step_deg": {"default": 30}, "max_steps": {"default": 12}}});
        let ask = |tool: &str, arguments: Value, battery| {
            let schema = if tool == "scan" { schema.clone() } else { json!({}) };
            let charge = Charge::of_call(tool, &arguments, &schema).expect("numbers");
            used.motion(&budgets(), charge, battery)
        };
        for (tool, arguments) in [
            ("turn_cw", json!({"deg": 60})),
            ("turn_ccw", json!({"deg": -60})),
            ("set_yaw", json!({"deg": 180})),
            ("move_forward", json!({"cm": 100})),
            ("move_left", json!({"cm": 300})),
            ("move_base", json!({"direction": "left", "distance": 2.0})),
            (
                "move_base",
                json!({"direction": "forward", "distance": 1.0, "degrees": 90}),
            ),
            (
                "walk",
                json!({"direction": "backward", "speed": 1.0, "duration": 30}),
            ),
            ("turn_cw", json!({"deg": "60"})),
            ("scan", json!({"max_steps": 2})),
        ] {
            assert_eq!(ask(tool, arguments, Battery::Pct(80.0)), Verdict::Go, "{tool}");
        }
        for (tool, arguments, why) in [
            ("turn_cw", json!({"deg": 61}), "60 of 360"),
            ("spin", json!({"degrees": 90}), "60 of 360"),
            ("scan", json!({"step_deg": 30}), "needs 360"),
            ("move_forward", json!({"cm": 110}), "1 of 5"),
            ("move_forward", json!({"cm": " 110 "}), "1 of 5"),
            ("turn_cw", json!({"deg": "300"}), "60 of 360"),
            ("turn_cw", json!({"deg": "-3e2"}), "needs 300"),
            (
                "move_base",
                json!({"direction": "forward", "distance": 1.1}),
                "1 of 5",
            ),
            (
                "move_base",
                json!({"direction": " Forward", "distance": 1.1}),
                "1 of 5",
            ),
            (
                "move_base",
                json!({"direction": "rotate_left", "degrees": 115, "distance": 0.5}),
                "needs 115",
            ),
            (
                "walk",
                json!({"direction": "forward", "speed": 0.5, "duration": 3}),
                "needs 1.5",
            ),
            (
                "walk",
                json!({"direction": "rotate_right", "duration": 3}),
                "needs 85.94",
            ),
        ] {
            assert!(
                matches!(ask(tool, arguments, Battery::NeverKnown), Verdict::Refuse(reason) if reason.contains(why)),
                "{tool}"
            );
        }
        let used = Usage {
            forward_m: 5.0,
            ..used
        };
        for (tool, arguments, battery, spent) in [
            (
                "move_forward",
                json!({"cm": 10}),
                Battery::NeverKnown,
                BudgetKind::Distance,
            ),
            ("scan", json!({}), Battery::NeverKnown, BudgetKind::Distance),
            ("wave", json!({}), Battery::Pct(24.9), BudgetKind::Battery),
            ("wave", json!({}), Battery::Lost, BudgetKind::Battery),
        ] {
            let charge = Charge::of_call(tool, &arguments, &json!({})).expect("numbers");
            let verdict = used.motion(&budgets(), charge, battery);
            assert_eq!(verdict, Verdict::End(End::Budget(spent)), "{tool}");
        }
    }

    #[test]
    fn what_is_charged_is_a_number_or_the_call_is_refused() {
        for (tool, arguments) in [
            ("turn_cw", json!({"deg": "many"})),
            ("turn_cw", json!({"deg": "nan"})),
            ("turn_cw", json!({"deg": "1_0"})),
            ("turn_cw", json!({"deg": [90]})),
            ("turn_cw", json!({"deg": true})),
            ("turn_cw", json!({"deg": null})),
            ("move_forward", json!({"cm": "inf"})),
            ("scan", json!({"step_deg": 30, "max_steps": {}})),
            ("move_base", json!({"direction": "forward", "distance": "far"})),
        ] {
            let charge = Charge::of_call(tool, &arguments, &json!({}));
            assert!(charge.is_err(), "{tool} {arguments}: {charge:?}");
        }
    }

    #[test]
    fn the_same_call_counts_whatever_the_order_of_its_keys() {
        let mut used = Usage::default();
        used.call("move", &json!({"a": 1, "b": {"c": 2, "d": 3}}));
        assert_eq!(
            used.would_repeat("move", &json!({"b": {"d": 3, "c": 2}, "a": 1})),
            2
        );
        used.call("move", &json!({"b": {"d": 3, "c": 2}, "a": 1}));
        assert_eq!(used.repeats, 2);
        used.call("move", &json!({"a": 2}));
        assert_eq!((used.repeats, used.calls), (1, 3));
    }

    #[test]
    fn failures_count_in_a_row() {
        let mut used = Usage::default();
        for (failed, expected) in [(true, 1), (true, 2), (false, 0), (true, 1)] {
            used.count_outcome(failed);
            assert_eq!(used.failures, expected);
        }
    }
}
