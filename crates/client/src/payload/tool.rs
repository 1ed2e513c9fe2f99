//! The tools: `ovos.tools.list`, `get`, `export` and `reload`, `ovos.persona.tools.discover`.
//!
//! The service sends tools from text that was written when their toolbox was loaded, so the answers that hold tools leave
//! their type open.

use ovos_toolbox_wire::{Audience, Effect, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One tool, by the five published fields.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolEntry {
    /// What callers use.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    #[schemars(!default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default)]
    #[schemars(!default)]
    pub argument_schema: Value,
    /// JSON Schema of the result.
    #[serde(default)]
    #[schemars(!default)]
    pub output_schema: Value,
    /// The toolbox that owns it.
    #[serde(default)]
    #[schemars(!default)]
    pub toolbox_id: String,
    /// Where the request says `"detail": true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<ToolMeta>,
}

/// What the five fields do not say.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolMeta {
    /// The name that means this tool alone and that every vendor of models accepts: exports give it this name.
    #[serde(default)]
    #[schemars(!default)]
    pub exported: String,
    /// The machine that it runs on, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A heading to group tools under.
    pub category: Option<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// For whom it is: `person` where models do not need it, `model` when absent.
    #[serde(default, skip_serializing_if = "Audience::is_model")]
    pub audience: Audience,
    /// How long each of its actions may take, in milliseconds, where the tool says so.
    pub timeout_ms: Option<u64>,
    /// What it holds while it runs, where that does not depend on the arguments; `ovos.tools.plan` knows it for a call.
    pub subsystems: Option<Vec<String>>,
    /// The arguments of each call that an agent makes of it when a run that moved what the call holds has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_end: Vec<Object>,
}

/// The key `tool` of a definition of `ovos.tools.export`, where the request says `"detail": true`: which tool it describes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportedTool {
    /// The tool's own name.
    pub name: String,
    /// The toolbox that owns it.
    pub toolbox_id: String,
    /// As in the answer to `ovos.tools.list`.
    pub meta: ToolMeta,
}

/// The shape of `ovos.tools.list.response`, which is sent from text that was written when a toolbox was loaded.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ListResponseShape")]
pub struct ListResponse<T = ToolEntry> {
    /// Every tool, by toolbox.
    pub tools: Vec<T>,
    /// Asks for the next page as `cursor`, where the request had a `limit` and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The shape of `ovos.persona.tools.discover.response`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DiscoverResponseShape")]
pub struct DiscoverResponse<T = ToolEntry> {
    /// The toolbox's tools.
    pub tools: Vec<T>,
    /// The toolbox.
    pub toolbox_id: String,
    /// Asks for the next page of this toolbox as `cursor`, where the request had a `limit` and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The answer to `ovos.tools.export`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportResponse {
    /// The format.
    pub format: String,
    /// The tools, each as the format has it, and with `tool` (its own `name`, `toolbox_id` and `meta`) where the
    /// request says `"detail": true`. Tools of effect `resume` are for an operator and left out.
    pub tools: Value,
    /// Asks for the next page as `cursor`, where the request had a `limit` and there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The shape of `ovos.tools.reload.response`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReloadResponseShape")]
pub struct ReloadResponse<T = ToolEntry> {
    /// Every tool after the reload.
    #[serde(default = "Vec::new")]
    #[schemars(!default)]
    pub tools: Vec<T>,
    /// Ids of the toolboxes that are loaded.
    #[serde(default)]
    #[schemars(!default)]
    pub loaded: Vec<String>,
    /// How many tools there are.
    #[serde(default)]
    #[schemars(!default)]
    pub total_tools: usize,
    /// Why `tools` is missing: the list is too large for the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_left_out: Option<String>,
    /// Where the request says `"detail": true`.
    #[serde(flatten)]
    pub outcome: Option<ReloadOutcome>,
}

/// What a reload did, by toolbox id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ReloadOutcome {
    /// New toolboxes.
    pub added: Vec<String>,
    /// Toolboxes whose file is gone.
    pub removed: Vec<String>,
    /// Toolboxes whose file or configuration changed.
    pub replaced: Vec<String>,
    /// Toolboxes that were left alone.
    pub unchanged: Vec<String>,
    /// Files that could not be loaded; what they were to replace goes on serving.
    pub failed: Vec<FailedFile>,
    /// Tools that are not called by their own names any more, because those mean other tools now, or several: by which names, and
    /// why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub renamed: Vec<String>,
    /// Toolboxes that are installed and not loaded, although nothing is wrong with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<OffToolbox>,
    /// Why tools that change or move something are refused: files of the configuration that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// What the configuration says and nothing comes of it, as in `status`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A toolbox that is installed and not loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffToolbox {
    /// Its id.
    pub toolbox_id: String,
    /// Its file.
    pub path: String,
    /// Why it is off.
    pub reason: String,
    /// The command that switches it on; absent if none does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enable: Option<String>,
}

/// A file that could not be loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedFile {
    /// The file.
    pub path: String,
    /// The toolbox it claims to be, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolbox_id: Option<String>,
    /// What is wrong with it and what to do.
    pub reason: String,
}
