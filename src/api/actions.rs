//! The actions of a plan, in the forms for clients and for people.

use serde_json::{Value, json};

use client::payload::PlannedActionEntry;
use client::text::is_unseen;
use engine::{Plan, PlannedAction};
use schema::shorten_text;

/// The largest plan, in bytes of JSON, that is kept for an operator. Of a larger plan only the text is kept.
const LARGEST: usize = 64 << 10;

/// The longest label of an action in a text for people, in bytes.
const LABEL: usize = 60;

/// The longest parameters of an action in a text for people, in bytes.
const PARAMS: usize = 300;

/// The actions of a wave.
pub(super) fn entries(plan: &Plan, wave: &[usize]) -> Vec<PlannedActionEntry> {
    wave.iter().map(|&index| entry(plan, index)).collect()
}

fn entry(plan: &Plan, index: usize) -> PlannedActionEntry {
    let action = &plan.actions[index];
    PlannedActionEntry {
        id: action.id.clone(),
        name: action.name.clone(),
        subsystems: action.subsystems.clone(),
        effect: action.effect,
        timeout_ms: u64::try_from(action.timeout.as_millis()).unwrap_or(u64::MAX),
        dependencies: action
            .dependencies
            .iter()
            .map(|&index| plan.actions[index].id.clone())
            .collect(),
        params: action.params.clone(),
    }
}

/// The actions of each wave for an operator, with all of their parameters; `null` if they have more than [`LARGEST`]
/// bytes.
pub(super) fn for_people(plan: &Plan) -> Value {
    let mut size = 0;
    let mut waves = Vec::new();
    for wave in &plan.waves {
        let mut actions = Vec::new();
        for &index in wave {
            let Ok(entry) = serde_json::to_value(entry(plan, index)) else {
                return Value::Null;
            };
            size += entry.to_string().len();
            if size > LARGEST {
                return Value::Null;
            }
            actions.push(entry);
        }
        waves.push(Value::Array(actions));
    }
    Value::Array(waves)
}

/// All actions of a plan, complete.
pub(super) fn everything(plan: &Plan) -> Value {
    let actions = (0..plan.actions.len()).map(|index| entry(plan, index));
    json!(actions.collect::<Vec<_>>())
}

/// An action and the subsystems that it uses.
pub(super) fn label(action: &PlannedAction) -> String {
    match action.subsystems.as_slice() {
        [] => action.id.clone(),
        names => format!("{} @ {}", action.id, names.join(", ")),
    }
}

/// An action, its subsystems and its parameters, for a person who decides whether it may run. A model may have written
/// the parameters, so they are quoted as JSON.
pub(super) fn describe_for_person(action: &PlannedAction) -> String {
    let mut text = visible(&label(action), LABEL);
    if !action.params.is_empty() {
        let params = visible(&serde_json::to_string(&action.params).unwrap_or_default(), PARAMS);
        text.push(' ');
        text.push_str(&params);
        // Uncut parameters end with the brace of the object.
        if !params.ends_with('}') {
            text.push_str(" (cut)");
        }
    }
    text
}

fn visible(text: &str, limit: usize) -> String {
    let text: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    shorten_text(&text, limit)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ovos_toolbox_wire::{Effect, Object};

    use super::*;

    fn action(id: &str, params: Value) -> PlannedAction {
        let Value::Object(params) = params else {
            panic!("{params}")
        };
        PlannedAction {
            id: id.to_owned(),
            name: "move".to_owned(),
            subsystems: vec!["arm".to_owned()],
            params,
            effect: Effect::Motion,
            timeout: Duration::from_secs(1),
            dependencies: Vec::new(),
            wave: 1,
            after: Vec::new(),
        }
    }

    #[test]
    fn a_person_is_told_what_would_run_and_can_read_it() {
        let long = format!(r#"move @ arm {{"note":"{}... (cut)"#, "x".repeat(PARAMS - 9));
        for (id, params, expected) in [
            ("move", json!({}), "move @ arm"),
            (
                "move",
                json!({"note": "now", "to": 3.5}),
                r#"move @ arm {"note":"now","to":3.5}"#,
            ),
            (
                "move",
                json!({"note": "\"} @ leg (0 actions)"}),
                r#"move @ arm {"note":"\"} @ leg (0 actions)"}"#,
            ),
            (
                "mo\u{202e}ve\n",
                json!({"note": "a\u{202e}b\u{200b}c\u{2066}d\u{85}e\u{e0041}f\u{feff}g\nh"}),
                r#"move @ arm {"note":"abcdefg\nh"}"#,
            ),
            ("move", json!({"note": "x".repeat(1000)}), long.as_str()),
        ] {
            assert_eq!(describe_for_person(&action(id, params)), expected);
        }
        let name = describe_for_person(&action(&"y".repeat(1000), Value::Object(Object::new())));
        assert_eq!(name, "y".repeat(LABEL) + "...");
    }

    #[test]
    fn an_operator_is_shown_a_plan_up_to_its_bound() {
        let noted = |length: usize| Plan {
            actions: vec![
                action("a", json!({})),
                action("b", json!({"note": "x".repeat(length)})),
            ],
            waves: vec![vec![0], vec![1]],
            sentences: std::collections::BTreeMap::new(),
        };
        let steps = for_people(&noted(3));
        assert_eq!(
            [&steps[0][0]["id"], &steps[1][0]["params"]["note"]],
            [&json!("a"), &json!("xxx")]
        );
        assert_eq!(for_people(&noted(LARGEST)), Value::Null);
    }
}
