//! What requests look like, and how they are read.
//!
//! The published contract is lax (a name may be anything, arguments are checked late), so requests are read key by key
//! rather than refused as a whole; the types here are what the schemas in `schemas/` are made of.

use std::time::Duration;

use ovos_toolbox_wire::{Effect, Object};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::WireError;
use schema::shorten;

/// `ovos.tools.invoke`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct InvokeRequest {
    /// The tool, or its alias `<toolbox_id>__<name>`.
    pub name: String,
    /// Its arguments; `{}` where they are missing.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub args: Object,
    /// Which toolbox's tool is meant, where two own the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// What the request says beside that.
    #[serde(flatten)]
    pub options: CallOptions,
}

/// `ovos.persona.tools.call`, and its predecessor `ovos.persona.tools.<toolbox_id>.call`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CallRequest {
    /// The toolbox that owns the tool.
    pub toolbox_id: String,
    /// The tool.
    pub name: String,
    /// Its arguments; `{}` where they are missing.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub kwargs: Object,
    /// What the request says beside that.
    #[serde(flatten)]
    pub options: CallOptions,
}

/// What a caller can say about a call beside the tool and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallOptions {
    /// Names the call for cancel, status and progress: 1 to 128 of `[A-Za-z0-9._:-]`. Echoed in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9._:-]{1,128}$"))]
    pub call_id: Option<String>,
    /// Ends the call when it is not done by then, in milliseconds from receipt; waiting counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Asks for `ovos.tools.invoke.progress` messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
    /// Asks for `error_detail` in the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

impl CallOptions {
    /// Reads the optional keys of a call.
    ///
    /// # Errors
    /// A key of the wrong type or range, named with what is accepted.
    pub fn read(data: &Object) -> Result<Self, WireError> {
        Ok(Self {
            call_id: call_id(data)?,
            timeout_ms: timeout_ms(data)?,
            progress: flag(data, "progress")?,
            detail: flag(data, "detail")?,
        })
    }

    /// The caller's bound.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

/// `ovos.tools.get`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct GetRequest {
    /// The tool, or its alias.
    pub name: String,
    /// Which toolbox's tool is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// Asks for `meta`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

/// `ovos.tools.list`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ListRequest {
    /// Only this toolbox's tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// Only tools of this effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Asks for `meta` of each tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

/// `ovos.tools.reload`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ReloadRequest {
    /// Asks for what changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

/// `ovos.tools.plan`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct PlanRequest {
    /// The tool, or its alias.
    pub name: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub args: Object,
    /// Which toolbox's tool is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
}

/// `ovos.tools.export`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ExportRequest {
    /// `openai`, `openai_responses`, `anthropic`, `mcp`, `hume` or `json` (the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Only this toolbox's tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// Only these tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
}

/// `ovos.tools.cancel`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CancelRequest {
    /// The call.
    pub call_id: String,
}

/// `ovos.tools.stop`. Whatever it holds, it stops something; without a toolbox that is known, everything.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StopRequest {
    /// Which toolbox to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
}

/// `ovos.tools.resume`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ResumeRequest {
    /// The toolbox; `all` lifts the stop wherever it holds, also from what is not installed any more.
    pub toolbox_id: String,
    /// The stop to lift, as the answer to the stop and `ovos.tools.status` name it.
    pub stop_id: String,
}

/// A request without keys: `ovos.tools.status`, `ovos.persona.tools.discover`, the status topics.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct EmptyRequest {}

/// A string that may be missing.
pub(super) fn text(data: &Object, key: &str) -> Result<Option<String>, WireError> {
    match data.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong(key, "a string", other)),
    }
}

/// A string that has to be there.
pub(super) fn required_text(data: &Object, key: &str) -> Result<String, WireError> {
    match text(data, key)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(WireError::new(
            "ValueError",
            format!("Missing required field: '{key}'"),
        )),
    }
}

/// An effect that may be missing.
pub(super) fn effect(data: &Object) -> Result<Option<Effect>, WireError> {
    let Some(word) = text(data, "effect")? else {
        return Ok(None);
    };
    let known = Effect::ALL.into_iter().find(|effect| effect.as_str() == word);
    let names = Effect::ALL.map(Effect::as_str).join(", ");
    known
        .map(Some)
        .ok_or_else(|| wrong("effect", &format!("one of {names}"), &Value::from(word)))
}

/// A list of strings that may be missing.
pub(super) fn texts(data: &Object, key: &str) -> Result<Option<Vec<String>>, WireError> {
    let accepted = "a list of strings";
    match data.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| wrong(key, accepted, item))
            })
            .collect::<Result<_, _>>()
            .map(Some),
        Some(other) => Err(wrong(key, accepted, other)),
    }
}

/// A flag; false where it is missing.
pub(super) fn flag(data: &Object, key: &str) -> Result<bool, WireError> {
    match data.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong(key, "true or false", other)),
    }
}

pub(super) fn call_id(data: &Object) -> Result<Option<String>, WireError> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    match data.get("call_id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if (1..=128).contains(&id.len()) && id.bytes().all(legal) => {
            Ok(Some(id.clone()))
        }
        Some(other) => Err(wrong("call_id", "1 to 128 characters of [A-Za-z0-9._:-]", other)),
    }
}

fn timeout_ms(data: &Object) -> Result<Option<u64>, WireError> {
    /// A month: beyond it clocks overflow, and no client waits.
    const LONGEST: u64 = 31 * 24 * 3600 * 1000;
    match data.get("timeout_ms") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(ms) if (1..=LONGEST).contains(&ms) => Ok(Some(ms)),
            _ => Err(wrong(
                "timeout_ms",
                &format!("an integer of milliseconds from 1 to {LONGEST}"),
                value,
            )),
        },
    }
}

fn wrong(key: &str, accepted: &str, found: &Value) -> WireError {
    WireError::new(
        "ValueError",
        format!("'{key}' must be {accepted}, got {}", shorten(found)),
    )
}
