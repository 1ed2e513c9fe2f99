//! The JSON Schemas of every request and response, made from the types that are sent.

use std::collections::BTreeMap;

use ovos_toolbox_wire::Severity;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;
use serde_json::Value;

use super::cancel::CancelResponse;
use super::export::ExportResponse;
use super::invoke::{CallResponse, InvokeResponse};
use super::list::ToolEntry;
use super::plan::{PlanErrorResponse, PlanResponse};
use super::progress::ProgressMessage;
use super::reload::ReloadOutcome;
use super::request::{
    CallRequest, CancelRequest, EmptyRequest, ExportRequest, GetRequest, InvokeRequest, ListRequest,
    PlanRequest, ReloadRequest, ResumeRequest, StopRequest,
};
use super::status::{IsReady, StatusResponse};
use super::stop::StopResponse;

/// An answer that is nothing but an error.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ErrorResponse {
    /// Why there is nothing else.
    error: String,
}

/// `ovos.tools.event`: what a toolbox reports by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventMessage {
    /// The toolbox.
    pub toolbox_id: String,
    /// What happened, in one word.
    pub kind: String,
    /// How urgent it is.
    pub severity: Severity,
    /// Whatever belongs to it.
    pub data: Option<Value>,
    /// Seconds since 1970, UTC.
    pub ts: f64,
}

/// The shape of `ovos.tools.list.response`, which is sent from text that was written when a toolbox was loaded.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ListResponseShape {
    /// Every tool, by toolbox.
    tools: Vec<ToolEntry>,
}

/// The shape of `ovos.persona.tools.discover.response`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct DiscoverResponseShape {
    /// The toolbox's tools.
    tools: Vec<ToolEntry>,
    /// The toolbox.
    toolbox_id: String,
}

/// The shape of `ovos.tools.reload.response`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ReloadResponseShape {
    /// Every tool after the reload.
    tools: Vec<ToolEntry>,
    /// Ids of the toolboxes that are loaded.
    loaded: Vec<String>,
    /// How many tools there are.
    total_tools: usize,
    /// Where the request says `"detail": true`.
    #[schemars(flatten)]
    outcome: Option<ReloadOutcome>,
}

/// The schema of every payload, by file name below `schemas/`.
#[must_use]
pub fn schemas() -> BTreeMap<String, Schema> {
    let rows = [
        ("ovos.tools.list", schema_for!(ListRequest)),
        (
            "ovos.tools.list.response",
            schema_for!(Either<ListResponseShape, ErrorResponse>),
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
            schema_for!(Either<ReloadResponseShape, ErrorResponse>),
        ),
        ("ovos.tools.plan", schema_for!(PlanRequest)),
        (
            "ovos.tools.plan.response",
            schema_for!(Either<PlanResponse, PlanErrorResponse>),
        ),
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
        ("ovos.tools.status", schema_for!(EmptyRequest)),
        (
            "ovos.tools.status.response",
            schema_for!(Either<StatusResponse, ErrorResponse>),
        ),
        ("ovos.tools.event", schema_for!(EventMessage)),
        ("ovos.persona.tools.discover", schema_for!(EmptyRequest)),
        (
            "ovos.persona.tools.discover.response",
            schema_for!(Either<DiscoverResponseShape, ErrorResponse>),
        ),
        ("ovos.persona.tools.call", schema_for!(CallRequest)),
        ("ovos.persona.tools.call.response", schema_for!(CallResponse)),
        ("mycroft.ovos_tools.is_ready", schema_for!(EmptyRequest)),
        ("mycroft.ovos_tools.is_ready.response", schema_for!(IsReady)),
    ];
    rows.into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
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
