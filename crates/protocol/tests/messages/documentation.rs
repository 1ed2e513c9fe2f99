//! `docs/protocol.md` has an example of every order and every notice, and each is one.
use std::collections::BTreeSet;

use ovos_tools_protocol::{self as protocol, Notice, Order};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// The lines of the page that are JSON of this side.
fn examples(tag: &str) -> Vec<&'static str> {
    let begin = format!("{{\"{tag}\":");
    PAGE.lines().filter(|line| line.starts_with(&begin)).collect()
}

/// Checks each example against the types, payloads included, and that each name has one.
fn check<T: JsonSchema + Serialize + DeserializeOwned>(tag: &str) {
    let schema = Value::from(schema_for!(T));
    let names = |value: &Value| value["properties"][tag]["const"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = schema["oneOf"].as_array().unwrap().iter().map(names).collect();
    assert!(names.len() > 10, "{names:?}");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut messages = BTreeSet::new();
    for line in examples(tag) {
        let value: Value = serde_json::from_str(line).unwrap();
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{line}\n{wrong:?}");
        let read: T = serde_json::from_str(line).unwrap();
        let mut written = Vec::new();
        let toolbox = protocol::address(line.as_bytes()).unwrap();
        protocol::write(&mut written, &read, toolbox.as_deref()).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), line, "as it is written");
        messages.insert(value[tag].as_str().unwrap().to_owned());
    }
    assert_eq!(messages, names, "each has an example, and no other");
}

#[test]
fn every_order_has_an_example_that_is_one() {
    check::<Order>("order");
}

#[test]
fn every_notice_has_an_example_that_is_one() {
    check::<Notice>("notice");
}

#[test]
fn every_example_was_looked_at() {
    let code = PAGE.lines().filter(|line| line.starts_with('{')).count();
    assert_eq!(code, examples("order").len() + examples("notice").len());
    assert!(code > 30, "{code}");
}

#[test]
fn the_page_states_the_version_and_the_limits() {
    for stated in [
        format!("`protocol` in `hello` is {}.", protocol::PROTOCOL),
        format!("{} bytes (64 MiB) on the data lane", protocol::MAX_DATA),
        format!("{} bytes (1 MiB) on the control lane", protocol::MAX_CONTROL),
    ] {
        assert!(PAGE.replace('\n', " ").contains(&stated), "{stated}");
    }
}
