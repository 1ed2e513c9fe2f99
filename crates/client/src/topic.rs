//! The topics of requests, each with the types of its request and its answer.

use std::marker::PhantomData;

use serde_json::Value;

use crate::payload::{
    CancelRequest, CancelResponse, EmptyRequest, ExportRequest, ExportResponse, GetRequest, InvokeRequest,
    InvokeResponse, IsReady, ListRequest, ListResponse, PlanRequest, PlanResponse, ReloadRequest,
    ReloadResponse, ResumeRequest, RunPlanRequest, RunPlanResponse, RunRequest, RunResponse, StatusRequest,
    StatusResponse, StopRequest, StopResponse, ToolEntry, VoiceJoinRequest, VoiceJoinResponse,
};

/// A topic whose requests are a `Q` and whose answers are an `A`.
#[derive(Debug)]
pub struct Topic<Q, A> {
    name: &'static str,
    types: PhantomData<fn(&Q) -> A>,
}

// Not derived: a derive would ask the same of the request and the answer.
impl<Q, A> Clone for Topic<Q, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q, A> Copy for Topic<Q, A> {}

impl<Q, A> Topic<Q, A> {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            types: PhantomData,
        }
    }

    /// Its name on the bus.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// All tools.
pub const LIST: Topic<ListRequest, ListResponse> = Topic::new("ovos.tools.list");
/// What OVOS's scheduler has to send, which every scheduler on the bus answers.
pub const OVOS_SCHEDULER: Topic<EmptyRequest, Value> = Topic::new("mycroft.scheduler.list_events");
/// One tool.
pub const GET: Topic<GetRequest, ToolEntry> = Topic::new("ovos.tools.get");
/// Runs a tool; [`Client::invoke`](crate::Client::invoke) uses it.
pub const INVOKE: Topic<InvokeRequest, InvokeResponse> = Topic::new("ovos.tools.invoke");
/// Runs several tools; [`Client::run`](crate::Client::run) uses it.
pub const RUN: Topic<RunRequest, RunResponse> = Topic::new("ovos.tools.run");
/// The plan of a call that is not run.
pub const PLAN: Topic<PlanRequest, PlanResponse> = Topic::new("ovos.tools.plan");
/// The plan of a run that is not run.
pub const PLAN_RUN: Topic<RunPlanRequest, RunPlanResponse> = Topic::new("ovos.tools.plan");
/// The tools in the format of a model.
pub const EXPORT: Topic<ExportRequest, ExportResponse> = Topic::new("ovos.tools.export");
/// Ends a call.
pub const CANCEL: Topic<CancelRequest, CancelResponse> = Topic::new("ovos.tools.cancel");
/// Emergency stop.
pub const STOP: Topic<StopRequest, StopResponse> = Topic::new("ovos.tools.stop");
/// Lifts an emergency stop.
pub const RESUME: Topic<ResumeRequest, StopResponse> = Topic::new("ovos.tools.resume");
/// The status of the service.
pub const STATUS: Topic<StatusRequest, StatusResponse> = Topic::new("ovos.tools.status");
/// Whether every toolbox is loaded or has failed.
pub const ALL_LOADED: Topic<EmptyRequest, IsReady> = Topic::new("mycroft.ovos_tools.all_loaded");
/// Loads added and changed plugins, drops removed ones.
pub const RELOAD: Topic<ReloadRequest, ReloadResponse> = Topic::new("ovos.tools.reload");

/// The voice door joins a conversation; [`Client::serve`](crate::Client::serve) reads such requests.
pub const VOICE_JOIN: Topic<VoiceJoinRequest, VoiceJoinResponse> = Topic::new("ovos.tools.voice.join");

/// A call or a run later; the schedule door answers these.
pub const SCHEDULE: Topic<Value, Value> = Topic::new("ovos.tools.schedule");
/// What is scheduled.
pub const SCHEDULE_LIST: Topic<Value, Value> = Topic::new("ovos.tools.schedule.list");
/// Removes a schedule.
pub const SCHEDULE_CANCEL: Topic<Value, Value> = Topic::new("ovos.tools.schedule.cancel");
/// Lets what a stop suspended fire again.
pub const SCHEDULE_RESUME: Topic<Value, Value> = Topic::new("ovos.tools.schedule.resume");

/// A door announces itself.
pub(crate) const DOOR_HELLO: &str = "ovos.tools.door.hello";
/// A door for which something moves is still there.
pub(crate) const DOOR_BEAT: &str = "ovos.tools.door.beat";
/// The user says "stop".
pub(crate) const USER_STOP: &str = "ovos.stop";
/// The user says "stop", in the form of older programs.
pub(crate) const OLD_USER_STOP: &str = "mycroft.stop";

/// The prefix of most topics, and of messages that answer no request.
pub(crate) const PREFIX: &str = "ovos.tools.";
/// The prefix of the topics about the start of the service, which every OVOS service has.
pub(crate) const PROCESS_PREFIX: &str = "mycroft.ovos_tools.";
/// The progress of a call.
pub(crate) const PROGRESS: &str = "ovos.tools.invoke.progress";
/// The events of toolboxes.
pub(crate) const EVENT: &str = "ovos.tools.event";
/// The end of a reload, whichever client asked for it.
pub(crate) const RELOADED: &str = "ovos.tools.reload.response";
