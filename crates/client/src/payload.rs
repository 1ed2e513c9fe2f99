//! What crosses the bus under the topics of the tools API, as types, and the JSON Schemas made from them.
//!
//! The service writes these types and clients read them. The Python service answers with fewer keys, so reading fills in missing
//! ones (`#[serde(default)]`). A newer service may answer with other words. The schemas say what this service always sends
//! (`#[schemars(!default)]`).

mod agent;
mod call;
mod control;
mod facts;
mod request;
mod run;
mod status;
mod tool;
mod voice;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, schema_for};
use serde_json::json;

pub use agent::{
    AgentCancelRequest, AgentCancelResponse, AgentEndCall, AgentProgress, AgentProgressKind, AgentRunBudgets,
    AgentRunRequest, AgentRunResponse,
};
pub use call::{
    CallResponse, CancelResponse, Confirm, ErrorDetail, InvokeResponse, PlanErrorResponse, PlanResponse,
    PlannedActionEntry, ProgressKind, ProgressMessage, failure_key,
};
pub use control::{ControlAnswer, ControlRequest, WaitingCall};
pub use facts::{
    FACTS_FORMAT, FactLine, FactPosition, FactsStatus, LostFacts, NoPosition, RecordedFact, ServiceStart,
};
pub use request::{
    CallOptions, CallRequest, CancelRequest, ContentMode, DiscoverRequest, DoorHello, EmptyRequest,
    ExportRequest, GetRequest, InvokeRequest, ListRequest, PlanRequest, ReloadRequest, ResumeRequest,
    StatusRequest, StopRequest,
};
pub use run::{
    RunPlanRequest, RunPlanResponse, RunRequest, RunResponse, RunStatus, RunStep, RunStepPlan, RunStepReport,
};
pub use status::{
    AllLatched, BusStatus, CallStatus, DoorStatus, EventMessage, IsReady, PythonStatus, ServiceStatus,
    StatusResponse, StopResponse, StoppedToolbox, ToolboxStatus,
};
pub use tool::{
    DiscoverResponse, ExportResponse, ExportedTool, FailedFile, ListResponse, OffToolbox, ReloadOutcome,
    ReloadResponse, ToolEntry, ToolMeta,
};
pub use voice::{VoiceJoinRequest, VoiceJoinResponse};

/// An answer that is nothing but an error.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ErrorResponse {
    /// Why there is nothing else.
    error: String,
}

/// The schema of every payload, by file name below `schemas/`.
#[must_use]
pub fn schemas() -> BTreeMap<String, Schema> {
    let rows = [
        ("ovos.tools.list", schema_for!(ListRequest)),
        (
            "ovos.tools.list.response",
            schema_for!(Either<ListResponse, ErrorResponse>),
        ),
        ("ovos.tools.get", schema_for!(GetRequest)),
        (
            "ovos.tools.get.response",
            schema_for!(Either<ToolEntry, ErrorResponse>),
        ),
        ("ovos.tools.invoke", schema_for!(InvokeRequest)),
        ("ovos.tools.invoke.response", schema_for!(InvokeResponse)),
        ("ovos.tools.invoke.progress", schema_for!(ProgressMessage)),
        ("ovos.tools.reload", schema_for!(ReloadRequest)),
        (
            "ovos.tools.reload.response",
            schema_for!(Either<ReloadResponse, ErrorResponse>),
        ),
        ("ovos.tools.run", schema_for!(RunRequest)),
        (
            "ovos.tools.run.response",
            schema_for!(Either<RunResponse, ErrorResponse>),
        ),
        ("ovos.tools.plan", schema_for!(AnyPlanRequest)),
        ("ovos.tools.plan.response", schema_for!(AnyPlanResponse)),
        ("ovos.tools.export", schema_for!(ExportRequest)),
        (
            "ovos.tools.export.response",
            schema_for!(Either<ExportResponse, ErrorResponse>),
        ),
        ("ovos.tools.cancel", schema_for!(CancelRequest)),
        ("ovos.tools.cancel.response", schema_for!(CancelResponse)),
        ("ovos.tools.stop", schema_for!(StopRequest)),
        ("ovos.tools.stop.response", schema_for!(StopResponse)),
        ("ovos.tools.resume", schema_for!(ResumeRequest)),
        ("ovos.tools.resume.response", schema_for!(StopResponse)),
        ("ovos.tools.status", schema_for!(StatusRequest)),
        (
            "ovos.tools.status.response",
            schema_for!(Either<StatusResponse, ErrorResponse>),
        ),
        ("ovos.tools.agent.run", schema_for!(AgentRunRequest)),
        ("ovos.tools.agent.run.response", schema_for!(AgentRunResponse)),
        ("ovos.tools.agent.progress", schema_for!(AgentProgress)),
        ("ovos.tools.agent.cancel", schema_for!(AgentCancelRequest)),
        (
            "ovos.tools.agent.cancel.response",
            schema_for!(AgentCancelResponse),
        ),
        ("ovos.tools.door.hello", schema_for!(DoorHello)),
        ("ovos.tools.door.beat", schema_for!(EmptyRequest)),
        ("ovos.tools.voice.join", schema_for!(VoiceJoinRequest)),
        (
            "ovos.tools.voice.join.response",
            schema_for!(Either<VoiceJoinResponse, ErrorResponse>),
        ),
        ("ovos.tools.event", schema_for!(EventMessage)),
        ("ovos.persona.tools.discover", schema_for!(DiscoverRequest)),
        (
            "ovos.persona.tools.discover.response",
            schema_for!(Either<DiscoverResponse, ErrorResponse>),
        ),
        ("ovos.persona.tools.call", schema_for!(CallRequest)),
        ("ovos.persona.tools.call.response", schema_for!(CallResponse)),
        ("mycroft.ovos_tools.is_ready", schema_for!(EmptyRequest)),
        ("mycroft.ovos_tools.is_ready.response", schema_for!(IsReady)),
    ];
    let mut schemas: BTreeMap<String, Schema> = rows
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    add_call_id(&mut schemas);
    schemas
}

/// Adds the `call_id` that every request to the service may have and that its answer repeats. No type has it, where it says no
/// more than that: the service puts it into the answers in one place.
fn add_call_id(schemas: &mut BTreeMap<String, Schema>) {
    let of_doors =
        |name: &str| name.starts_with("ovos.tools.agent.") || name.starts_with("ovos.tools.voice.");
    let requests: Vec<String> = schemas
        .keys()
        .filter_map(|name| name.strip_suffix(".response"))
        .map(str::to_owned)
        .collect();
    for name in requests.iter().filter(|name| !of_doors(name)) {
        let rows = [
            (
                name.clone(),
                "Repeated in the answer, so that a client can tell it from the answers to others.",
            ),
            (format!("{name}.response"), "As the request gave it."),
        ];
        for (name, description) in rows {
            let Some(schema) = schemas.get_mut(&name) else {
                continue;
            };
            let properties = schema
                .ensure_object()
                .entry("properties")
                .or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                properties.entry("call_id").or_insert_with(|| {
                    json!({"description": description, "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9._:-]+$"})
                });
            }
        }
    }
}

/// `ovos.tools.plan`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AnyPlanRequest {
    /// Of a call.
    Call(PlanRequest),
    /// Of a run.
    Run(RunPlanRequest),
}

/// The answer to `ovos.tools.plan`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AnyPlanResponse {
    /// The plan of a call.
    Call(PlanResponse),
    /// The plans of a run's steps.
    Run(RunPlanResponse),
    /// There is none.
    Bad(PlanErrorResponse),
}

/// One of two shapes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Either<A, B> {
    /// It went well.
    Good(A),
    /// It did not.
    Bad(B),
}
