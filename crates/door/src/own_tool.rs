//! The tools that a door has of its own, beside those of toolboxes. Read [`OwnTool`].

use ovos_toolbox_wire::{Effect, Object};
use serde_json::{Value, json};

/// One of some tools of a door that belong together.
pub trait OwnTool: Copy + 'static {
    /// All of them, in the order in which they are shown.
    const ALL: &'static [Self];

    /// The name of the tool.
    fn name(self) -> &'static str;

    /// The description that a model reads.
    fn description(self) -> &'static str;

    /// What the tool does itself.
    fn effect(self) -> Effect;

    /// The schema of its arguments. It has none unless it says so.
    fn arguments(self) -> Object {
        arguments(json!({}), &[])
    }

    /// The tool with this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }
}

/// The schema of an object with these properties.
pub(crate) fn arguments(properties: Value, required: &[&str]) -> Object {
    let mut schema = Object::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}
