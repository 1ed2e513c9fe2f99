//! `mycroft.conf.example` documents every key and states every default.

use std::collections::BTreeMap;

use ovos_tools_config::{Config, Origin};
use serde_json::{Value, json};

use crate::machine::{Machine, USER};

const EXAMPLE: &str = include_str!("../../../../mycroft.conf.example");

fn values(config: &Config) -> BTreeMap<String, Value> {
    config
        .settings()
        .map(|setting| (setting.key.clone(), setting.value.clone()))
        .collect()
}

#[test]
fn the_example_equals_the_defaults() {
    let example = Machine::new(&[(USER, EXAMPLE)], &[]);
    // The same folder for both, because defaults lie below the home directory.
    let with_example = example.load().unwrap();
    std::fs::remove_file(example.path(USER)).unwrap();
    let without = example.load().unwrap();
    assert!(with_example.toolboxes["hello"].is_ok());
    assert_eq!(with_example.notices, []);

    let mut defaults = values(&without);
    // Built-in locations are below the root of the test machine, those of the example are not.
    let root = example.path("").display().to_string();
    let real = |path: &Value| json!(path.as_str().unwrap().replace(&format!("{root}usr"), "/usr"));
    let dirs = defaults
        .get_mut("PHAL.\"ovos-phal-plugin-tools\".service.plugins_dir")
        .unwrap();
    *dirs = dirs.as_array().unwrap().iter().map(real).collect();
    let of_hello = without.toolbox("hello").unwrap();
    defaults.extend(
        of_hello
            .settings
            .iter()
            .map(|setting| (setting.key.clone(), setting.value.clone())),
    );
    assert_eq!(values(&with_example), defaults);
}

#[test]
fn every_key_occurs_in_the_example() {
    let example = Machine::new(&[(USER, EXAMPLE)], &[]);
    let config = example.load().unwrap();
    // A key with a null value is recognised by its line, all others by their origin.
    for setting in config.settings().filter(|setting| setting.key != "bus") {
        let name = setting.key.rsplit('.').next().unwrap();
        let line = EXAMPLE
            .lines()
            .any(|line| line.trim_start().starts_with(&format!("\"{name}\": ")));
        assert!(line, "{} is missing in mycroft.conf.example", setting.key);
        let written_as_null = EXAMPLE.contains(&format!("\"{name}\": null"));
        assert!(
            written_as_null || setting.origin != Origin::Default,
            "{} stands elsewhere",
            setting.key
        );
    }
    assert!(
        config.toolboxes["hello"].as_ref().unwrap().toolbox.own.is_empty(),
        "the example names keys that are not read"
    );
}

#[test]
fn the_confinement_in_the_comment_is_accepted() {
    let line = EXAMPLE
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("// \"confine\": "))
        .unwrap();
    let section: Value = serde_json::from_str(line).unwrap();
    let config = Machine::with_section(json!({"box": {"isolation": "process", "confine": section}}))
        .load()
        .unwrap();
    assert!(config.toolbox("box").unwrap().toolbox.confine.is_some());
}
