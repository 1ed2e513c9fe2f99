//! What a toolbox declares before it is opened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The static manifest of a toolbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The toolbox's id: `[a-z0-9_-]+`; `service` and `all` are reserved.
    pub id: String,
    /// Its version, for display.
    #[serde(default)]
    pub version: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its guide for models, in Markdown: what the toolbox is for, its units and conventions, how its tools go together, what
    /// limits and stops them. Doors show it as a page; without one they make a page of the tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub guide: String,
    /// SPDX expression.
    #[serde(default)]
    pub licence: String,
    /// The machine that it runs on, where that is another one: people and models are shown it. Only programs that reach one say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// It holds hardware that can be opened only once: on a reload the old generation closes before the new one opens.
    #[serde(default)]
    pub exclusive: bool,
    /// Its tools give way: one that reads or writes is not offered while a toolbox that does not yield offers one of its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub yields: bool,
    /// It drives a simulator unless its section says otherwise. From the packaged folder it is loaded only when it is asked for;
    /// and never while its section cannot be read, so that no simulator takes the place of a machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated_by_default: bool,
    /// It reaches for something that only its section names, such as the network of a robot. From the packaged folder it is loaded
    /// only when it has a section.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_section: bool,
    /// JSON Schema of its section in the configuration; any section is valid if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// Bus topics whose messages it receives. `ovos.stop` and `mycroft.stop`, the user's "stop", are allowed.
    #[serde(default)]
    pub subscribes: Vec<String>,
    /// Bus topics that it may send requests to with `host.request`.
    #[serde(default)]
    pub requests: Vec<String>,
}

/// Whether `id` is a valid toolbox id.
#[must_use]
pub fn is_toolbox_id(id: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    !id.is_empty() && id.len() <= 64 && id.bytes().all(legal) && id != "service" && id != "all"
}

/// Whether a toolbox may send requests to `topic`.
///
/// The tools API, the configuration and the stop topics are reserved: a toolbox that could send or intercept them could
/// bypass the configuration.
#[must_use]
pub fn is_requestable(topic: &str) -> bool {
    is_open(topic) && !is_user_stop(topic)
}

/// Whether a toolbox may subscribe to `topic`.
///
/// Like [`is_requestable`], plus the user's "stop", which is the only way to end what a call has left running. The
/// toolbox receives a copy, which is dropped like any message when the toolbox is too slow; the service acts on the
/// message itself.
#[must_use]
pub fn is_subscribable(topic: &str) -> bool {
    is_open(topic)
}

fn is_open(topic: &str) -> bool {
    let closed = ["ovos.tools.", "ovos.persona.tools.", "configuration."];
    let legal = |b: u8| b.is_ascii_alphanumeric() || b".:_-".contains(&b);
    !topic.is_empty() && topic.bytes().all(legal) && !closed.iter().any(|prefix| topic.starts_with(prefix))
}

fn is_user_stop(topic: &str) -> bool {
    matches!(topic, "ovos.stop" | "mycroft.stop")
}
