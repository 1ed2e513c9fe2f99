//! What requests look like. The service reads them key by key, because the published contract is lax.

use std::time::Duration;

use ovos_toolbox_wire::{Effect, Object};
use schemars::JsonSchema;
use serde::Serialize;

/// `ovos.tools.invoke`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct InvokeRequest {
    /// The tool, or its alias `<toolbox_id>__<name>`.
    pub name: String,
    /// Its arguments; `{}` where they are missing.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Object::is_empty")]
    pub args: Object,
    /// Which toolbox's tool is meant, where two own the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// The options of the call.
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
    #[serde(default)]
    #[schemars(skip_serializing_if = "Object::is_empty")]
    pub kwargs: Object,
    /// The options of the call.
    #[serde(flatten)]
    pub options: CallOptions,
}

/// The options of a call.
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
    /// Confirms the call, with the token of the answer that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub confirm: Option<String>,
    /// Refuses the call, with the token of the answer that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub decline: Option<String>,
    /// Asks for the pictures and other media that the tool returns beside its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentMode>,
}

/// How an answer carries content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentMode {
    /// As files on the service's machine, 8 MiB together, kept for 10 minutes at most.
    Path,
    /// In the answer itself, 4 MiB together.
    Inline,
}

impl CallOptions {
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
    /// How many tools the answer has at most, 1 to 65536. It may have fewer, as a page has about 1 MiB at most; its
    /// `next_cursor` says whether there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an answer: asks for what follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `ovos.persona.tools.discover`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DiscoverRequest {
    /// How many tools each answer has at most, 1 to 65536. It may have fewer, as a page has about 1 MiB at most; its
    /// `next_cursor` says whether its toolbox has more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an answer: asks for what follows it, and only the toolbox of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
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
    #[serde(default)]
    #[schemars(skip_serializing_if = "Object::is_empty")]
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
    /// How many tools the answer has at most, 1 to 65536. It may have fewer, as a page has about 1 MiB at most; its
    /// `next_cursor` says whether there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub limit: Option<u32>,
    /// The `next_cursor` of an answer: asks for what follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Whether each tool has `tool` beside what the format has: its own `name`, its `toolbox_id`, and the `meta` of `ovos.tools.list`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

/// `ovos.tools.cancel`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct CancelRequest {
    /// The call.
    pub call_id: String,
}

/// `ovos.tools.stop`. A request with any content stops something: everything, if it names no known toolbox.
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

/// `ovos.tools.status`.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct StatusRequest {
    /// Asks for the guide of each toolbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guides: bool,
}

/// A request without keys: the status topics.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct EmptyRequest {}

/// `ovos.tools.door.hello`: a program brings clients to the tools, and will beat while something moves for them. It has no
/// answer, and neither has `ovos.tools.door.beat`; both name the door's session in their context, which is that of its calls.
/// The service ends the calls of a door that does not beat for a second.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DoorHello {
    /// What kind of door it is, such as `mcp`.
    pub name: String,
}
