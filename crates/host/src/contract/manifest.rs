//! Whether a manifest can be used.
//!
//! Pure: turns a text into a manifest, or into every reason against it. Read [`read`] first.

use ovos_toolbox_wire::{Manifest, is_requestable, is_subscribable, is_toolbox_id};
use serde_json::Value;

use program::json;
use schema::OutputSchema;

/// Reads a manifest.
///
/// # Errors
/// Every problem, in one sentence each.
pub(crate) fn read(json: &str) -> Result<Manifest, Vec<String>> {
    let value: Value = json::read(json).map_err(|e| vec![format!("the manifest is not JSON: {e}")])?;
    let Some(object) = value.as_object() else {
        return Err(vec!["the manifest is not a JSON object".to_owned()]);
    };
    let mut wrong = Vec::new();
    match object.get("id") {
        None => wrong.push("`id` is missing".to_owned()),
        Some(Value::String(id)) if is_toolbox_id(id) => {}
        Some(id) => wrong.push(format!(
            "`id` is {id}; expected 1 to 64 of a-z, 0-9, _ and - (`service` and `all` are reserved)"
        )),
    }
    for key in ["version", "description", "guide", "licence"] {
        if object.get(key).is_some_and(|v| !v.is_string()) {
            wrong.push(format!("`{key}` is not a string"));
        }
    }
    for key in ["exclusive", "yields", "simulated_by_default", "needs_section"] {
        if object.get(key).is_some_and(|v| !v.is_boolean()) {
            wrong.push(format!("`{key}` is neither true nor false"));
        }
    }
    let of_service = "outside ovos.tools.*, ovos.persona.tools.* and configuration.*";
    topics(
        "subscribes",
        object.get("subscribes"),
        is_subscribable,
        of_service,
        &mut wrong,
    );
    let or_stops = format!("{of_service}, and not the stop topics");
    topics(
        "requests",
        object.get("requests"),
        is_requestable,
        &or_stops,
        &mut wrong,
    );
    match object.get("config_schema") {
        None | Some(Value::Null) => {}
        Some(schema) => {
            if let Err(error) = OutputSchema::compile(schema) {
                wrong.push(format!("`config_schema`: {error}"));
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    serde_json::from_value(value).map_err(|e| vec![format!("the manifest cannot be read: {e}")])
}

fn topics(
    key: &str,
    value: Option<&Value>,
    may_have: fn(&str) -> bool,
    which: &str,
    wrong: &mut Vec<String>,
) {
    let Some(value) = value else { return };
    let Some(list) = value.as_array() else {
        wrong.push(format!("`{key}` is not a list of topics"));
        return;
    };
    for topic in list {
        match topic.as_str() {
            Some(topic) if may_have(topic) => {}
            _ => wrong.push(format!(
                "`{key}` has {topic}; it may have topics of letters, digits and .:_- {which}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[&str]) {
        let wrong = match read(json) {
            Ok(_) => Vec::new(),
            Err(wrong) => wrong,
        };
        assert_eq!(wrong.len(), expected.len(), "{json}: {wrong:?}");
        for (found, expected) in wrong.iter().zip(expected) {
            assert!(found.contains(expected), "{found:?} should contain {expected:?}");
        }
    }

    #[test]
    fn a_manifest_is_read_or_everything_wrong_with_it_is_listed() {
        check(r#"{"id":"math"}"#, &[]);
        check(
            r#"{"id":"a-b_9","exclusive":true,"subscribes":["speak"],"requests":["ovos.utterance:x"],"new":1}"#,
            &[],
        );
        // A toolbox may receive the user's "stop", but not send one.
        check(r#"{"id":"a","subscribes":["ovos.stop","mycroft.stop"]}"#, &[]);
        check(
            r#"{"id":"a","requests":["ovos.stop","mycroft.stop"]}"#,
            &["ovos.stop", "mycroft.stop"],
        );
        check("nonsense", &["not JSON"]);
        check("[]", &["not a JSON object"]);
        check("{}", &["`id` is missing"]);
        check(r#"{"id":"service"}"#, &["reserved"]);
        check(
            r#"{"id":"Math","version":1,"exclusive":"yes","subscribes":["ovos.tools.stop","a b"],"requests":"x","config_schema":{"type":"objekt"}}"#,
            &[
                "`id` is \"Math\"",
                "`version`",
                "`exclusive`",
                "ovos.tools.stop",
                "a b",
                "`requests` is not a list",
                "`config_schema`: schema at #/type",
            ],
        );
        check(
            r##"{"id":"x","config_schema":{"$ref":"http://example.org/s.json"}}"##,
            &["`config_schema`"],
        );
    }
}
