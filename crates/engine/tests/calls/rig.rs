//! An engine with the toolbox in memory, and calls of it.
//!
//! Read [`Rig`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ovos_toolbox_wire::{ActionReport, Effect, Object, Outcome, Progress, Report};
use ovos_tools_engine::{
    Answer, CallEnd, CallLookup, CallRequest, Engine, Lease, Limits, RequestOrigin, Step,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::memory_toolbox::{DEADLINE, MemoryToolbox, Shared};

/// An engine with one toolbox called `robot`.
pub(crate) struct Rig {
    pub(crate) engine: Arc<Engine>,
    pub(crate) toolbox: Arc<MemoryToolbox>,
    calls: AtomicUsize,
}

pub(crate) const GENERATION: u64 = 1;

impl Rig {
    /// Makes a generation callable, or callable again.
    pub(crate) fn attach(&self, generation: u64) {
        let toolbox = Arc::new(Shared(self.toolbox.clone()));
        self.engine
            .attach("robot", generation, toolbox, Limits::default());
    }

    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::bounded(4096, limits)
    }

    pub(crate) fn bounded(max_calls: usize, limits: Limits) -> Self {
        let engine = Arc::new(Engine::new(max_calls, HashMap::new()));
        let toolbox = MemoryToolbox::new();
        engine.attach("robot", GENERATION, Arc::new(Shared(toolbox.clone())), limits);
        Self {
            engine,
            toolbox,
            calls: AtomicUsize::new(0),
        }
    }

    /// A motion call without a timeout of its own.
    pub(crate) fn request(&self, tool: &str) -> CallRequest {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        CallRequest {
            call_id: format!("call-{number}"),
            toolbox_id: "robot".to_owned(),
            generation: GENERATION,
            tool: tool.to_owned(),
            effect: Effect::Motion,
            action_timeout: None,
            args: Object::new(),
            session_id: None,
            lang: None,
            source: None,
            operator: false,
            content: false,
            received: tokio::time::Instant::now().into_std(),
            timeout: None,
            facts: None,
        }
    }

    /// A request that is received here, and makes facts.
    pub(crate) fn received(&self, request: CallRequest) -> CallRequest {
        let CallRequest {
            call_id,
            toolbox_id,
            tool,
            effect,
            ..
        } = &request;
        let origin = Arc::new(RequestOrigin::default());
        let facts = self.engine.facts();
        let facts = facts.received(call_id, toolbox_id, tool, *effect, origin);
        CallRequest {
            facts: Some(facts),
            ..request
        }
    }

    /// As [`Self::received`], with a queue of the call's own.
    pub(crate) fn with_queue(&self, request: CallRequest) -> (CallRequest, mpsc::Receiver<Step>) {
        let mut request = self.received(request);
        let steps = request.facts.as_mut().expect("it makes facts").queue();
        (request, steps)
    }

    pub(crate) fn lease(&self) -> Lease {
        self.engine
            .lease("robot", GENERATION)
            .expect("the generation takes calls")
    }

    /// Runs a call in its own task.
    pub(crate) fn spawn(&self, request: CallRequest) -> Call {
        let (engine, lease, call_id) = (self.engine.clone(), self.lease(), request.call_id.clone());
        let task = tokio::spawn(async move {
            let facts = request.facts.clone();
            let end = engine.call(&lease, request).await;
            if facts.is_some() {
                let ok = matches!(end, CallEnd::Ran { .. });
                let answer = Answer {
                    ok,
                    ..Answer::default()
                };
                engine.facts().answered(facts.as_ref(), Arc::default(), answer);
            }
            end
        });
        Call { call_id, task }
    }

    /// Runs a motion call of this tool in its own task.
    pub(crate) fn motion(&self, tool: &str) -> Call {
        self.spawn(self.request(tool))
    }

    /// As [`Self::motion`], with another effect.
    pub(crate) fn effect(&self, tool: &str, effect: Effect) -> Call {
        self.spawn(CallRequest {
            effect,
            ..self.request(tool)
        })
    }

    /// Asks a call to end.
    pub(crate) fn end(&self, call: &Call, cause: ovos_tools_engine::Cause) {
        match self.engine.find(&call.call_id) {
            CallLookup::InFlight(control) => control.end(cause),
            other => panic!("{} is {other:?}", call.call_id),
        }
    }

    /// Waits until the call is in this phase.
    pub(crate) async fn phase(&self, call: &Call, wanted: ovos_tools_engine::Phase) {
        let reached = async {
            loop {
                if let CallLookup::InFlight(control) = self.engine.find(&call.call_id)
                    && control.phase() == wanted
                {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        // Paused time does not advance while a task is ready, so the wait is bounded by a number of polls.
        let mut turns = 0;
        let mut reached = std::pin::pin!(reached);
        std::future::poll_fn(|context| {
            turns += 1;
            assert!(turns < 100_000, "{} never reached {wanted:?}", call.call_id);
            reached.as_mut().poll(context)
        })
        .await;
    }
}

/// A call under way.
pub(crate) struct Call {
    pub(crate) call_id: String,
    pub(crate) task: JoinHandle<CallEnd>,
}

impl Call {
    pub(crate) async fn end(self) -> CallEnd {
        let end = tokio::time::timeout(DEADLINE, self.task).await;
        end.unwrap_or_else(|_| panic!("{} never ended", self.call_id))
            .unwrap()
    }

    pub(crate) async fn report(self) -> Report {
        let call_id = self.call_id.clone();
        match self.end().await {
            CallEnd::Ran { report, .. } => report,
            CallEnd::Refused(refusal) => panic!("{call_id} was refused: {refusal}"),
        }
    }

    pub(crate) async fn refusal(self) -> ovos_tools_engine::Refusal {
        let call_id = self.call_id.clone();
        match self.end().await {
            CallEnd::Refused(refusal) => refusal,
            CallEnd::Ran { report, .. } => panic!("{call_id} ran: {report:?}"),
        }
    }
}

/// The outcomes of a report, by id.
pub(crate) fn outcomes(report: &Report) -> BTreeMap<&str, Outcome> {
    report
        .actions
        .iter()
        .map(|line| (line.id.as_str(), line.outcome))
        .collect()
}

pub(crate) fn line<'a>(report: &'a Report, id: &str) -> &'a ActionReport {
    report
        .actions
        .iter()
        .find(|line| line.id == id)
        .expect("a line for every action")
}

/// The kind of a fact, as followers read it.
pub(crate) fn kind(fact: &ovos_tools_engine::Fact) -> String {
    let fact = serde_json::to_value(fact).unwrap();
    fact["fact"].as_str().unwrap().to_owned()
}

pub(crate) fn some_progress() -> Progress {
    Progress {
        fraction: Some(0.5),
        ..Progress::default()
    }
}
