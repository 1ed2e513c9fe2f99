//! The router and the request server with panics, floods and dying toolboxes, without a bus.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::unimplemented,
    reason = "a test fails by panicking; a bug to run into"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use ovos_toolbox_wire::{Audience, Completion, Effect, Failure, Object, Progress, Start, ToolDefinition};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::deliveries::Deliveries;
use super::router::Router;
use crate::api::{Api, Outbox, ReloadOutcome, Settings, StatusResponse, Toolboxes};
use crate::policy::{Backends, Policy};
use crate::registry::{Registry, Snapshot, Tool, ToolboxEntry, ToolboxState};
use bus::{BusHandler, Message};
use engine::{
    Counts, Engine, Fact, Followed, Halt, Limits, NoAnswer, ProgressSink, RunId, RunResult, Toolbox,
};
use schema::CompiledTool;
use section::HiddenArguments;

/// A plugin side that panics in every query except those for the latches and the backends, and in `configuration_updated`.
struct Broken {
    latches: Result<(), String>,
}

impl Toolboxes for Broken {
    fn reload(&self) -> BoxFuture<'_, ReloadOutcome> {
        unimplemented!()
    }
    fn status(&self) -> StatusResponse {
        unimplemented!()
    }
    fn backends(&self, _: &str, _: u64) -> Backends {
        Backends::default()
    }
    fn latches_changed(&self) -> BoxFuture<'_, Result<(), String>> {
        ready(self.latches.clone()).boxed()
    }
}

impl Deliveries for Broken {
    fn deliver(&self, _: &Message) {}
    fn configuration_updated(&self) {
        unimplemented!()
    }
    fn configuration_patched(&self, _: &Message, _: &Object) {}
    fn configuration_patches_cleared(&self) {}
}

struct Sent(mpsc::UnboundedSender<String>);

impl Outbox for Sent {
    fn answer(&self, frame: String) -> BoxFuture<'_, ()> {
        self.0.send(frame).unwrap();
        Box::pin(async {})
    }
    fn answer_urgent(&self, frame: String) -> BoxFuture<'_, ()> {
        self.answer(frame)
    }
    fn notify(&self, frame: String) {
        self.0.send(frame).unwrap();
    }
}

/// A router with its API, engine and registry.
struct Counter {
    router: Arc<Router>,
    engine: Arc<Engine>,
    registry: Arc<Registry>,
    answers: mpsc::UnboundedReceiver<String>,
    shutdown: CancellationToken,
}

impl Counter {
    fn new(latches: Result<(), String>) -> Self {
        let (sent, answers) = mpsc::unbounded_channel();
        let settings = Settings {
            operator_tools: false,
            policy: Arc::new(Policy::new(Vec::new(), false, Duration::from_secs(1))),
            max_answer_bytes: 1 << 20,
            hidden_arguments: HiddenArguments::default(),
            content_dir: std::env::temp_dir(),
        };
        let engine = Arc::new(Engine::new(8, HashMap::new()));
        let registry = Arc::new(Registry::default());
        let toolboxes = Arc::new(Broken { latches });
        let api = Api::new(
            engine.clone(),
            registry.clone(),
            toolboxes.clone(),
            Arc::new(Sent(sent)),
            settings,
        );
        api.set_all_loaded();
        let shutdown = CancellationToken::new();
        // 8 calls give the smallest queue: 64 requests.
        let router = Router::start(
            Arc::new(api),
            toolboxes,
            TaskTracker::new(),
            shutdown.clone(),
            1,
            false,
            &Handle::current(),
        );
        Self {
            router,
            engine,
            registry,
            answers,
            shutdown,
        }
    }

    /// Attaches a toolbox `arm` with one tool for each of these effects, named after the effect.
    fn attach(&self, generation: u64, toolbox: Arc<dyn Toolbox>, effects: &[Effect]) {
        let tool = |effect: &Effect| {
            let name = serde_json::to_value(effect).unwrap().as_str().unwrap().to_owned();
            let object = json!({"type": "object"});
            let definition = ToolDefinition {
                name: format!("{name}_arm"),
                description: String::new(),
                category: None,
                effect: *effect,
                audience: Audience::Model,
                for_models: Object::new(),
                timeout_ms: None,
                agent_end: Vec::new(),
                validates: false,
                foreign: false,
                argument_schema: object.clone(),
                output_schema: object,
            };
            let compiled = Arc::new(CompiledTool::new(definition));
            Arc::new(Tool::new("arm", generation, compiled).unwrap())
        };
        let limits = Limits::default();
        self.engine.attach("arm", generation, toolbox, limits);
        self.registry.swap(Snapshot::new([ToolboxEntry {
            toolbox_id: "arm".to_owned(),
            generation,
            state: ToolboxState::Ready,
            tools: effects.iter().map(tool).collect(),
            yielded: Vec::new(),
        }]));
    }

    fn send(&self, kind: &str, data: &Value) {
        let frame = json!({"type": kind, "data": data, "context": {}});
        self.router.frame(frame.to_string().into());
    }

    async fn answer(&mut self) -> Value {
        let frame = self.answers.recv().await.expect("an answer");
        serde_json::from_str(&frame).unwrap()
    }

    /// Waits until all requests are answered; returns the answers that were not read yet.
    async fn rest(mut self) -> Vec<Value> {
        self.router.wait_until_answered().await;
        self.shutdown.cancel();
        let mut rest = Vec::new();
        while let Ok(frame) = self.answers.try_recv() {
            rest.push(serde_json::from_str(&frame).unwrap());
        }
        rest
    }
}

/// A toolbox that answers at once, or dies.
#[derive(Default)]
struct Arm {
    /// Whether planning never ends.
    plans: bool,
    unplanned: Option<NoAnswer>,
    dies: Option<RunResult>,
    /// The number of calls, including those that got no further than the plan.
    starts: AtomicUsize,
    halts: AtomicUsize,
    /// The number of updates that each action sends.
    updates: usize,
    sink: Mutex<Option<ProgressSink>>,
}

impl Toolbox for Arm {
    fn plan<'a>(
        &'a self,
        _: &'a str,
        _: &'a Object,
    ) -> BoxFuture<'a, Result<Option<ovos_toolbox_wire::Plan>, NoAnswer>> {
        if self.plans {
            return pending().boxed();
        }
        let planned = match &self.unplanned {
            None => Ok(None),
            Some(unplanned) => {
                self.starts.fetch_add(1, Ordering::SeqCst);
                Err(unplanned.clone())
            }
        };
        ready(planned).boxed()
    }

    fn start(&self, _: RunId, _: Start, sink: Option<ProgressSink>) -> BoxFuture<'static, RunResult> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        if let Some(sink) = sink {
            (0..self.updates).for_each(|_| sink(Progress::default()));
            *self.sink.lock() = Some(sink);
        }
        let ended = match &self.dies {
            None => RunResult::Reported(Completion::Output(json!({"done": true}))),
            Some(ended) => ended.clone(),
        };
        ready(ended).boxed()
    }

    fn cancel(&self, _: RunId) {}

    fn halt(&self, _: Halt) -> BoxFuture<'static, Result<(), NoAnswer>> {
        self.halts.fetch_add(1, Ordering::SeqCst);
        ready(Ok(())).boxed()
    }

    fn resume(&self) -> BoxFuture<'static, Result<(), NoAnswer>> {
        ready(Ok(())).boxed()
    }
}

#[tokio::test]
async fn a_bug_in_one_request_affects_only_that_request() {
    let mut counter = Counter::new(Ok(()));
    for kind in ["configuration.updated", "ovos.tools.status", "ovos.tools.list"] {
        counter.send(kind, &json!({}));
    }
    let status = counter.answer().await;
    assert_eq!(status["type"], "ovos.tools.status.response");
    let error = status["data"]["error"].as_str().unwrap();
    assert!(error.contains("bug in the service"), "{error}");
    let list = counter.answer().await;
    assert_eq!(list["data"], json!({"tools": []}));
    assert_eq!(counter.rest().await, [] as [Value; 0]);
}

#[tokio::test]
async fn requests_beyond_the_queue_get_a_busy_error() {
    let counter = Counter::new(Ok(()));
    let router = counter.router.clone();
    // Nothing is served before this test awaits, so the queue of 64 is full after 64 requests; then so is the other
    // one.
    for number in 0..130 {
        let data = json!({"name": "x", "call_id": format!("c{number}")});
        counter.send("ovos.tools.invoke", &data);
    }
    let answers = counter.rest().await;
    let error = |answer: &Value| answer["data"]["error"].as_str().unwrap().to_owned();
    let busy: Vec<_> = answers
        .iter()
        .filter(|answer| error(answer).starts_with("BusyError: "))
        .collect();
    assert_eq!((answers.len(), busy.len()), (128, 64));
    assert_eq!((router.turned_away(), router.dropped()), (64, 2));
    for (number, answer) in (64..).zip(busy) {
        assert_eq!(answer["data"]["name"], "x");
        assert_eq!(answer["data"]["call_id"], format!("c{number}"));
    }
}

/// Tried through every topic and every name of the tool, with many requests queued.
#[tokio::test]
async fn a_tool_that_stops_is_never_behind_other_requests() {
    let by_name = json!({"name": "stop_arm", "call_id": "s"});
    let escaped = r#"{"type": "ovos.tools.invoke", "data": {"name": "\u0073top_arm", "call_id": "s"}}"#;
    let frames = [
        json!({"type": "ovos.tools.invoke", "data": by_name}).to_string(),
        json!({"type": "ovos.tools.invoke", "data": {"name": "arm__stop_arm", "call_id": "s"}}).to_string(),
        json!({"type": "ovos.tools.invoke", "data": {"name": "stop_arm", "toolbox_id": "gone", "call_id": "s"}})
            .to_string(),
        escaped.to_owned(),
        json!({"type": "ovos.persona.tools.call", "data": {"toolbox_id": "arm", "name": "stop_arm", "call_id": "s"}})
            .to_string(),
        json!({"type": "ovos.persona.tools.arm.call", "data": by_name}).to_string(),
    ];
    for frame in frames {
        let mut counter = Counter::new(Ok(()));
        let arm = Arc::new(Arm::default());
        counter.attach(1, arm.clone(), &[Effect::Stop, Effect::Read]);
        for _ in 0..200 {
            counter.send("ovos.tools.invoke", &json!({"name": "read_arm"}));
        }
        counter.router.frame(frame.clone().into());
        let first = counter.answer().await;
        assert_eq!(
            first["data"]["call_id"], "s",
            "{frame}: the first answer is {first}"
        );
        assert_eq!(first["data"]["result"]["success"], true, "{frame}: {first}");
        assert_eq!(arm.halts.load(Ordering::SeqCst), 1, "{frame}");
        let rest = counter.rest().await;
        assert_eq!(
            rest.len(),
            128,
            "{frame}: it is answered once, and so are the others"
        );
    }
}

#[tokio::test]
async fn a_stop_that_cannot_be_remembered_says_so() {
    for (kind, data) in [
        ("ovos.tools.stop", json!({})),
        ("ovos.tools.invoke", json!({"name": "stop_arm"})),
    ] {
        let mut counter = Counter::new(Err("/state/latches.json: no space left".to_owned()));
        counter.attach(1, Arc::new(Arm::default()), &[Effect::Stop]);
        counter.send(kind, &data);
        let answer = counter.answer().await;
        let result = answer["data"].get("result").unwrap_or(&answer["data"]);
        let entry = &result["toolboxes"][0];
        assert_eq!(entry["ok"], false, "{answer}");
        assert!(
            entry["stop_id"].is_string(),
            "it is stopped all the same: {answer}"
        );
        let error = entry["error"].as_str().unwrap();
        for part in ["StateError: ", "restart of the service", "no space left"] {
            assert!(error.contains(part), "{error} should contain {part}");
        }
        assert!(counter.engine.latch("arm").is_some());
    }
}

#[tokio::test]
async fn a_call_whose_toolbox_died_before_it_began_goes_to_the_next_copy() {
    let crashed = || Failure::new("ToolboxCrashed", "toolbox `arm`: signal 9");
    // An error from the toolbox itself proves that the toolbox was asked, even if its data claims otherwise.
    let failure = || Failure {
        data: Some(json!({"begun": false})),
        ..crashed()
    };
    for (unplanned, dies, expected) in [
        (None, Some(RunResult::NeverBegun(crashed())), true),
        (None, Some(RunResult::Lost(crashed())), false),
        (
            None,
            Some(RunResult::Reported(Completion::Error(failure()))),
            false,
        ),
        (Some(NoAnswer::NeverAsked(crashed())), None, true),
        (Some(NoAnswer::Failed(failure())), None, false),
    ] {
        let mut counter = Counter::new(Ok(()));
        let dead = Arc::new(Arm {
            unplanned,
            dies,
            ..Arm::default()
        });
        let next = Arc::new(Arm::default());
        counter.attach(1, dead.clone(), &[Effect::Motion]);
        counter.send("ovos.tools.invoke", &json!({"name": "motion_arm"}));
        while dead.starts.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        counter.engine.detach("arm", 1);
        counter.attach(2, next.clone(), &[Effect::Motion]);
        let answer = counter.answer().await;
        assert_eq!(answer["data"]["result"]["done"] == true, expected, "{answer}");
        let starts = [&dead, &next].map(|arm| arm.starts.load(Ordering::SeqCst));
        assert_eq!(starts, [1, usize::from(expected)], "{answer}");
        if !expected {
            let error = answer["data"]["error"].as_str().unwrap();
            assert!(error.starts_with("ToolboxCrashed: "), "{error}");
        }
        assert_eq!(counter.rest().await, [] as [Value; 0], "one answer");
    }
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_it_is_planned_for_the_one_who_confirms_it() {
    let mut counter = Counter::new(Ok(()));
    let arm = Arm {
        plans: true,
        ..Arm::default()
    };
    counter.attach(1, Arc::new(arm), &[Effect::Motion]);
    let data = json!({"name": "motion_arm", "call_id": "c"});
    let call = json!({"type": "ovos.tools.invoke", "data": data, "context": {"source": "ovos-tools-mcp"}});
    counter.router.frame(call.to_string().into());
    let entered = async {
        while counter.engine.calls_in_flight() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), entered)
        .await
        .unwrap();
    counter.send("ovos.tools.cancel", &json!({"call_id": "c"}));
    let mut answers = [counter.answer().await, counter.answer().await];
    answers.sort_by_key(|answer| answer["type"].to_string());
    let [cancelled, called] = answers;
    assert_eq!(cancelled["data"]["cancelled"], true, "{cancelled}");
    let error = called["data"]["error"].as_str().unwrap();
    assert!(error.starts_with("CancelledError: "), "{error}");
}

/// Each row: a request, the facts that it makes, the call's id in them, and whether there is a result.
#[tokio::test]
async fn facts_follow_a_request_from_its_receipt_to_its_answer() {
    let ran = "received policy planned wave action_started action_ended answered";
    let rows = [
        (json!({"name": "read_arm"}), ran, Some("call-1"), true),
        (
            json!({"name": "read_arm", "call_id": "mine"}),
            ran,
            Some("mine"),
            true,
        ),
        (
            json!({"name": "read_arm", "args": 5}),
            "received refused answered",
            Some("call-2"),
            false,
        ),
        (
            json!({"name": "read_arm", "timeout_ms": -1}),
            "received refused answered",
            Some("call-3"),
            false,
        ),
        (
            json!({"name": "no_such_tool", "timeout_ms": 1}),
            "answered",
            None,
            false,
        ),
        (json!({"name": "stop_arm"}), "stopped answered", None, true),
    ];
    let mut counter = Counter::new(Ok(()));
    counter.attach(1, Arc::new(Arm::default()), &[Effect::Read, Effect::Stop]);
    let mut follower = counter.engine.facts().follow();
    for (request, expected, call_id, ok) in rows {
        counter.send("ovos.tools.invoke", &request);
        let answer = counter.answer().await;
        let (mut kinds, mut answered, mut origin) = (Vec::new(), None, None);
        while answered.is_none() {
            let Some(Followed::Fact(fact)) = follower.next().await else {
                panic!("{request}: facts are lost after {kinds:?}");
            };
            if let Fact::Received { asked, .. } = &*fact.fact {
                origin = Some(asked.clone());
            }
            let written = serde_json::to_value(&fact).unwrap();
            kinds.push(written["fact"].as_str().unwrap().to_owned());
            if let Fact::Answered { call, asked, answer } = &*fact.fact {
                assert_eq!(
                    asked.is_some(),
                    call.is_none(),
                    "{request}: what was asked is told once"
                );
                let origin = asked.clone().or_else(|| origin.take()).unwrap();
                assert_eq!(*origin.request.clone().unwrap(), *request.as_object().unwrap());
                assert_eq!(origin.topic, "ovos.tools.invoke");
                answered = Some((call.clone(), answer.clone()));
            }
        }
        assert_eq!(kinds.join(" "), expected, "{request}");
        let (call, record) = answered.unwrap();
        assert_eq!(
            call.as_ref().map(|call| call.call_id.as_str()),
            call_id,
            "{request}"
        );
        assert_eq!(record.ok, ok, "{request}: {answer}");
        assert_eq!(record.result.as_ref(), answer["data"].get("result"), "{request}");
        assert_eq!(
            record.error.as_deref(),
            answer["data"]["error"].as_str(),
            "{request}"
        );
        assert_eq!(record.outcome.is_some(), expected == ran, "{request}");
    }
    let counts = Counts {
        calls: 4,
        failed_calls: 2,
        stops: 1,
    };
    assert_eq!(counter.engine.facts().counts(), counts);
}

#[tokio::test]
async fn progress_comes_in_order_before_the_answer_and_never_after_it() {
    for updates in [0, 1, 500] {
        let mut counter = Counter::new(Ok(()));
        let arm = Arc::new(Arm {
            updates,
            ..Arm::default()
        });
        counter.attach(1, arm.clone(), &[Effect::Motion]);
        let call = json!({"name": "motion_arm", "call_id": "c", "progress": true});
        counter.send("ovos.tools.invoke", &call);
        let mut kinds = Vec::new();
        loop {
            let frame = counter.answer().await;
            if frame["type"] == "ovos.tools.invoke.response" {
                break;
            }
            assert_eq!(frame["data"]["seq"], kinds.len() + 1, "{frame}");
            kinds.push(frame["data"]["kind"].as_str().unwrap().to_owned());
        }
        let before = ["wave", "action_started"].into_iter();
        let expected = before.chain(std::iter::repeat_n("update", updates));
        let expected: Vec<&str> = expected.chain(["action_ended"]).collect();
        assert_eq!(kinds, expected);
        let late = arm.sink.lock().take().expect("the call asked for progress");
        late(Progress::default());
        assert_eq!(counter.rest().await, [] as [Value; 0], "after the answer");
    }
}

/// Unlike a call, a plan has no timeout in which it could wait.
#[tokio::test(start_paused = true)]
async fn a_plan_does_not_wait_for_a_long_reload() {
    let mut counter = Counter::new(Ok(()));
    counter.attach(1, Arc::new(Arm::default()), &[Effect::Motion]);
    counter.engine.detach("arm", 1);
    let start = tokio::time::Instant::now();
    counter.send("ovos.tools.plan", &json!({"name": "motion_arm"}));
    let answer = counter.answer().await;
    let error = answer["data"]["error"].as_str().unwrap();
    assert!(error.starts_with("ToolboxUnavailable: "), "{error}");
    assert!(start.elapsed().as_secs() < 2, "it took {:?}", start.elapsed());
}
