//! What the service says of itself: `ovos.tools.status`, `stop`, `resume` and `event`, and the status topics.

use std::collections::BTreeMap;

use ovos_toolbox_wire::{Effect, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::facts::FactsStatus;
use super::tool::{FailedFile, OffToolbox};

/// The answer to `mycroft.ovos_tools.is_ready` and its siblings.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IsReady {
    /// `is_ready`: the service serves calls; slow toolboxes may still start. `all_loaded`: every toolbox that can be
    /// loaded is loaded.
    pub status: bool,
}

/// The answer to `ovos.tools.status`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct StatusResponse {
    /// The service itself.
    pub service: ServiceStatus,
    /// Its connection.
    pub bus: BusStatus,
    /// Every toolbox, loaded or not.
    pub toolboxes: Vec<ToolboxStatus>,
    /// The stop that holds every toolbox, also those that are loaded later. It is set if the saved state of an earlier run cannot
    /// be read. A resume of `all` lifts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_latched: Option<AllLatched>,
    /// Files that could not be loaded.
    pub failed: Vec<FailedFile>,
    /// Toolboxes that are installed and not loaded, although nothing is wrong with them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub off: Vec<OffToolbox>,
    /// Why tools that change or move something are refused: files of the configuration that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// Entries of the configuration without effect: invalid values, and names that match nothing, with the nearest match.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The Python interpreters whose toolboxes are hosted, or could be.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pythons: Vec<PythonStatus>,
    /// The doors that the service starts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub doors: Vec<DoorStatus>,
    /// Calls under way, oldest first.
    pub calls: Vec<CallStatus>,
    /// The counters since the start.
    pub counters: BTreeMap<String, u64>,
    /// The record of what happens.
    pub facts: FactsStatus,
    /// Keys of the configuration that changed and are not in force yet.
    pub pending_config: Vec<String>,
}

/// The service itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ServiceStatus {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Every toolbox that can be loaded is loaded.
    pub ready: bool,
}

/// The connection to the bus.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct BusStatus {
    /// Its address.
    pub url: String,
    /// Whether the service is connected to it.
    pub connected: bool,
    /// Whether this bus sends messages back to their sender, as far as seen. Without that the service cannot tell which answers
    /// arrived, and sends none again after an outage.
    pub echoes: bool,
    /// What the client has counted since the start.
    pub counters: BTreeMap<String, u64>,
}

/// A door that the service starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct DoorStatus {
    /// Its name.
    pub name: String,
    /// Its process; absent while none runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u64,
    /// Why it ended the last time, or cannot be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A Python interpreter of `service.programs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct PythonStatus {
    /// The name of its entry.
    pub program: String,
    /// Its file; absent if no interpreter of this entry hosts toolboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The toolboxes that are hosted, each with its package.
    pub toolboxes: Vec<String>,
    /// Toolboxes and interpreters that are not used, with the reasons.
    pub left_out: Vec<String>,
}

/// One toolbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct ToolboxStatus {
    /// Its id.
    pub toolbox_id: String,
    /// `ready`, `reloading` or `failed`.
    pub state: String,
    /// `process`: every toolbox runs in a process of its own.
    pub isolation: String,
    /// Its process, where it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The machine that it runs on, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// The number of the loaded copy that serves.
    pub generation: u64,
    /// What its manifest says.
    pub version: String,
    /// What it is for, by its manifest.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub description: String,
    /// Its guide for models, in Markdown, where the request says `"guides": true` and its manifest has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guide: Option<String>,
    /// Where it was found.
    pub path: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// How many of its tools can be called.
    pub tools: usize,
    /// Tools that it lists and that cannot be used, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dropped_tools: Vec<String>,
    /// Tools that it leaves to other toolboxes, which offer tools of these names.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub yielded_tools: Vec<String>,
    /// Tools that have to be called by another name, because their own is ambiguous or taken: that name, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub renamed_tools: Vec<String>,
    /// Tools that count as `write` because neither they nor the configuration state their effect. The key `effects` of its section
    /// does.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unstated_effects: Vec<String>,
    /// Why it does not serve, or that it runs without its confinement, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it is in emergency stop state.
    pub latched: bool,
    /// The stop that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_id: Option<String>,
    /// The reason of that stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// How often it was restarted after it had died.
    pub restarts: u64,
    /// The reason of the last death of its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_death: Option<String>,
    /// The data of its last event `backend`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<Value>,
    /// Whether its calls are on a simulator, as far as it has said so; absent where that depends on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<bool>,
}

/// A stop that holds everything.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AllLatched {
    /// What a resume of `all` has to name.
    pub stop_id: String,
    /// Why everything is held.
    pub stop_reason: String,
}

/// A call under way.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallStatus {
    /// Names it for cancel.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Its toolbox.
    pub toolbox_id: String,
    /// `planning`, `queued` or `running`.
    pub phase: String,
    /// What the tool does to the world.
    pub effect: Effect,
    /// The session that asked, when it named itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The subsystems that it holds or waits for.
    pub subsystems: Vec<String>,
    /// Milliseconds since it was received.
    pub elapsed_ms: u64,
    /// Which loaded copy runs it.
    pub generation: u64,
}

/// The answer to `ovos.tools.stop` and `ovos.tools.resume`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopResponse {
    /// One entry per toolbox. In the answer to a resume of `all` the first one is about the stop as a whole, and the others are the
    /// toolboxes that it held.
    pub toolboxes: Vec<StoppedToolbox>,
}

/// What became of one toolbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedToolbox {
    /// Which.
    pub toolbox_id: String,
    /// Stop: it is latched, the latch is saved, and its halt was confirmed. Resume: it takes calls again.
    pub ok: bool,
    /// Stop: what a resume has to name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_id: Option<String>,
    /// Stop: why the halt was not confirmed or the latch not saved. The toolbox is latched anyway. Resume: why it stays latched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `ovos.tools.event`: what a toolbox reports by itself; and from the service, of each toolbox that it is about, the kinds
/// `emergency_stop` and `resumed`, whose data is `{stop_id, by}`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventMessage {
    /// The toolbox.
    pub toolbox_id: String,
    /// What happened, in one word.
    pub kind: String,
    /// How urgent it is.
    pub severity: Severity,
    /// Details for a program.
    pub data: Option<Value>,
    /// Seconds since 1970, UTC.
    pub ts: f64,
}
