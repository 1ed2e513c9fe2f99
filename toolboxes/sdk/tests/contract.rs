//! The SDK's promises on behalf of every toolbox, tested through the C table.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ovos_toolbox_sdk::abi::{self, status};
use ovos_toolbox_sdk::boundary::Table;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::tokio;
use ovos_toolbox_sdk::wire::{CallOutcome, Failure};

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Config {
    /// Added to every sum.
    offset: i64,
    how_to_open: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            offset: 0,
            how_to_open: "well".to_string(),
        }
    }
}

/// A toolbox with a tool for every promise.
struct Probe {
    offset: i64,
    tools_panic: bool,
    host: Host,
    halts: Mutex<Vec<Halt>>,
    sent: AtomicUsize,
    sent_at_halt: AtomicUsize,
    cleaned: Arc<AtomicBool>,
}

/// Adds two integers.
#[derive(Deserialize, JsonSchema)]
struct AddArgs {
    /// The first.
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct AddOutput {
    result: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Done {
    done: bool,
}

async fn add(context: Context<Probe>, args: AddArgs) -> Result<AddOutput, ToolError> {
    tokio::task::yield_now().await;
    Ok(AddOutput {
        result: args.a + args.b + context.toolbox().offset,
    })
}

async fn forever(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    context.progress(0.0, "begun");
    std::future::pending().await
}

async fn panics(_: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    panic!("knocked over")
}

struct Unruly;

impl Drop for Unruly {
    fn drop(&mut self) {
        panic!("and dropping it panics, too");
    }
}

async fn panics_twice(_: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    std::panic::panic_any(Unruly)
}

async fn panics_when_dropped(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    let _unruly = Unruly;
    context.progress(0.0, "begun");
    std::future::pending().await
}

async fn cleans_up(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    let cancelled = context.cancelled();
    context.progress(0.0, "begun");
    cancelled.await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    context.toolbox().cleaned.store(true, Ordering::SeqCst);
    Err(ToolError::new("Parked", "put everything back"))
}

async fn finishes_anyway(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    let cancelled = context.cancelled();
    context.progress(0.0, "begun");
    cancelled.await;
    Ok(Done { done: true })
}

async fn watches_and_stays(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    let _cancelled = context.cancelled();
    context.progress(0.0, "begun");
    std::future::pending().await
}

async fn commands(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    context.progress(0.0, "begun");
    // Deliberately without an await: only the loss of the right to command can end it.
    loop {
        context.command(|| context.toolbox().sent.fetch_add(1, Ordering::SeqCst))?;
    }
}

async fn asks(context: Context<Probe>, args: Value) -> Result<Value, ToolError> {
    let answer = context
        .request("probe.question", args, Duration::from_millis(200))
        .await?;
    Ok(json!({ "answer": answer }))
}

async fn reports(context: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    for step in 1..=4 {
        context.progress(f64::from(step) / 4.0, format!("step {step}"));
    }
    let late = context.clone();
    context.host().spawn(async move {
        late.cancelled().await;
        late.progress(1.0, "too late");
    });
    context.host().event("noticed", json!({"what": 1}));
    context.host().latched("button");
    Ok(Done { done: true })
}

async fn fails_with_a_cause(_: Context<Probe>, _: Nothing) -> Result<Done, ToolError> {
    Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such arm"))?;
    Ok(Done { done: true })
}

async fn who(context: Context<Probe>, _: Nothing) -> Result<Value, ToolError> {
    let left = context
        .deadline()
        .map_or(0, |at| (at - Instant::now()).as_millis());
    Ok(json!({
        "call_id": context.call_id(), "tool": context.tool(), "action": context.action_id(),
        "session": context.session_id(), "lang": context.lang(), "source": context.source(),
        "in_time": left > 0 && left <= 10_000,
    }))
}

#[derive(Deserialize, JsonSchema)]
struct PourArgs {
    cups: u32,
}

#[derive(Serialize, JsonSchema)]
struct PourOutput {
    poured: usize,
    outcome: String,
}

fn plan_pour(_: &Probe, args: PourArgs) -> Result<Vec<Action>, ToolError> {
    if args.cups == 0 {
        return Err(ToolError::bad_args("cups: expected 1 or more"));
    }
    let mut actions = vec![Action {
        subsystems: vec!["kettle".to_string()],
        ..Action::named("heat")
    }];
    actions.extend((0..args.cups).map(|cup| Action {
        id: Some(format!("cup-{cup}")),
        dependencies: vec!["heat".to_string()],
        ..Action::named("fill")
    }));
    Ok(actions)
}

fn conclude_pour(_: &Probe, _: PourArgs, report: Report) -> Result<PourOutput, ToolError> {
    let filled = |line: &&ovos_toolbox_sdk::wire::ActionReport| line.name == "fill" && line.output.is_some();
    Ok(PourOutput {
        poured: report.actions.iter().filter(filled).count(),
        outcome: if report.outcome == CallOutcome::Completed {
            "completed"
        } else {
            "other"
        }
        .to_string(),
    })
}

async fn heat(_: Context<Probe>, _: Nothing) -> Result<Value, ToolError> {
    Ok(json!({"celsius": 96}))
}

async fn fill(context: Context<Probe>, _: Nothing) -> Result<Value, ToolError> {
    let heat: Value = context.input("heat")?;
    assert_eq!(context.input_ids(), ["heat"]);
    Ok(json!({"at": heat["celsius"]}))
}

impl Toolbox for Probe {
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            requests: vec!["probe.question".to_string()],
            ..manifest!("probe")
        }
    }

    fn options() -> Options {
        let mut options = Options::default();
        options.cancel_grace = Duration::from_millis(300);
        options
    }

    async fn open(host: Host, config: Config) -> Result<Self, ToolError> {
        match config.how_to_open.as_str() {
            "well" | "without_tools" => {}
            "panicking" => panic!("no power"),
            how => return Err(ToolError::new("NoBackend", how)),
        }
        Ok(Self {
            offset: config.offset,
            tools_panic: config.how_to_open == "without_tools",
            host,
            halts: Mutex::default(),
            sent: AtomicUsize::new(0),
            sent_at_halt: AtomicUsize::new(0),
            cleaned: Arc::default(),
        })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        assert!(!self.tools_panic, "no tools today");
        vec![
            Tool::read("add", add).category("Arithmetic"),
            Tool::motion("forever", forever).subsystems(["arm"]),
            Tool::read("panics", panics),
            Tool::read("panics_twice", panics_twice),
            Tool::read("panics_when_dropped", panics_when_dropped),
            Tool::read("cleans_up", cleans_up),
            Tool::read("finishes_anyway", finishes_anyway),
            Tool::read("watches_and_stays", watches_and_stays),
            Tool::motion("commands", commands).timeout(Duration::from_secs(3)),
            Tool::read("reports", reports),
            Tool::read("fails_with_a_cause", fails_with_a_cause),
            Tool::dynamic(
                "asks",
                Effect::Read,
                json!({"type": "object"}),
                json!({"type": "object"}),
                asks,
            ),
            Tool::dynamic(
                "who",
                Effect::Read,
                json!({"type": "object"}),
                json!({"type": "object"}),
                |context, _| who(context, Nothing {}),
            ),
            Tool::planned("pour", Effect::Motion, plan_pour, conclude_pour),
            Tool::dynamic(
                "state",
                Effect::Read,
                json!({"type": "object"}),
                json!({"type": "object"}),
                |context: Context<Self>, _| async move {
                    let probe = context.toolbox();
                    Ok(json!({
                        "sent": probe.sent.load(Ordering::SeqCst),
                        "sent_at_halt": probe.sent_at_halt.load(Ordering::SeqCst),
                        "halts": probe.halts.lock().unwrap().len(),
                        "cleaned": probe.cleaned.load(Ordering::SeqCst),
                    }))
                },
            ),
        ]
    }

    fn actions(&self) -> Vec<ActionHandler<Self>> {
        vec![ActionHandler::new("heat", heat), ActionHandler::new("fill", fill)]
    }

    fn halt(&self, halt: &Halt) -> Result<(), ToolError> {
        self.sent_at_halt
            .store(self.sent.load(Ordering::SeqCst), Ordering::SeqCst);
        self.halts.lock().unwrap().push(halt.clone());
        assert!(
            !halt.subsystems.iter().any(|name| name == "glass"),
            "the glass cannot be halted"
        );
        Ok(())
    }

    fn resume(&self) -> Result<(), ToolError> {
        Err(ToolError::msg("fallen over"))
    }

    fn may_close(&self) -> Result<(), ToolError> {
        Err(ToolError::msg("recording"))
    }

    fn message(&self, topic: &str, data: Value) {
        self.host.event("heard", json!({"topic": topic, "data": data}));
    }

    fn safe_stop(config: Config) -> Result<(), ToolError> {
        if config.offset == 13 {
            Err(ToolError::msg("no line"))
        } else {
            Ok(())
        }
    }
}

fn open() -> Harness {
    Harness::open::<Probe>(json!({})).unwrap()
}

#[test]
fn a_tool_answers_and_close_is_clean() {
    let probe = Harness::open::<Probe>(json!({"offset": 100, "unknown": true})).unwrap();
    assert_eq!(
        probe.call("add", json!({"a": 1, "b": 2})).unwrap(),
        json!({"result": 103})
    );
    let tool = probe.tool("add");
    assert_eq!(tool.description, "Adds two integers.");
    assert_eq!(tool.category.as_deref(), Some("Arithmetic"));
    assert_eq!(
        tool.argument_schema,
        json!({
            "title": "AddArgs", "type": "object", "required": ["a", "b"],
            "properties": {
                "a": {"description": "The first.", "title": "A", "type": "integer"},
                "b": {"title": "B", "type": "integer"},
            },
        })
    );
    assert_eq!(probe.tool("commands").timeout_ms, Some(3000));
    assert_eq!(probe.tool("forever").effect, Effect::Motion);
    let schema = probe.manifest().config_schema.unwrap();
    assert_eq!(schema["properties"]["offset"]["default"], 0);
    assert!(probe.close().is_clean());
}

#[test]
fn bad_arguments_are_refused() {
    let probe = open();
    let start = |json: &str| probe.start_text(json).map(|run| run.wait()).unwrap_err();
    let with = |tool: &str, action: &str, params: &str| {
        start(&format!(
            r#"{{"call":{{"call_id":"c","toolbox_id":"p","tool":"{tool}"}},"action":{{"id":"x","name":"{action}","effect":"read","params":{params}}}}}"#
        ))
    };
    for (refused, expected, mentions) in [
        (
            with("add", "add", r#"{"a":1}"#),
            status::BAD_ARGS,
            "missing field `b`",
        ),
        (
            with("add", "add", r#"{"a":1,"b":"two"}"#),
            status::BAD_ARGS,
            "invalid type",
        ),
        (with("add", "add", "[]"), status::BAD_ARGS, "invalid"),
        (with("nope", "nope", "{}"), status::UNKNOWN_TOOL, "nope"),
        (with("pour", "spill", "{}"), status::UNKNOWN_TOOL, "spill"),
        // A planned tool has no action of its own name.
        (
            with("pour", "pour", r#"{"cups":1}"#),
            status::UNKNOWN_TOOL,
            "pour",
        ),
        (start("{"), status::BAD_ARGS, "EOF"),
        (start(""), status::BAD_ARGS, "EOF"),
        (start("[1]"), status::BAD_ARGS, "invalid"),
        (start(&"[".repeat(100_000)), status::BAD_ARGS, ""),
    ] {
        assert_eq!(refused.status, expected, "{refused}");
        assert!(
            refused.failure.message.contains(mentions),
            "{refused} does not mention {mentions}"
        );
    }
    assert!(probe.close().is_clean());
}

#[test]
fn a_run_ends_when_it_is_cancelled() {
    let probe = open();
    for (tool, cancelled, kind) in [
        ("forever", status::CANCELLED, "CancelledError"),
        ("cleans_up", status::CANCELLED, "Parked"),
        ("watches_and_stays", status::CANCELLED, "CancelledError"),
        ("panics_when_dropped", status::PANIC, "Panic"),
        ("finishes_anyway", status::OK, ""),
    ] {
        let run = probe.start(tool, json!({})).unwrap();
        let _ = run.wait_progress(1);
        run.cancel();
        run.cancel();
        let ended = run.wait();
        assert_eq!(ended.status, cancelled, "{tool}: {}", ended.text);
        assert_eq!(
            ended
                .result()
                .err()
                .map(|failure| failure.kind)
                .unwrap_or_default(),
            kind,
            "{tool}"
        );
    }
    assert_eq!(probe.call("state", json!({})).unwrap()["cleaned"], true);
    probe.cancel(987_654);
    assert!(probe.close().is_clean());
}

#[test]
fn a_panic_is_a_completion() {
    let probe = open();
    let ended = probe.start("panics", json!({})).unwrap().wait();
    assert_eq!(ended.status, status::PANIC);
    assert_eq!(ended.result().unwrap_err(), Failure::new("Panic", "knocked over"));
    assert_eq!(
        probe.call("add", json!({"a": 1, "b": 1})).unwrap(),
        json!({"result": 2})
    );
    assert!(probe.close().is_clean());
}

#[test]
fn a_payload_that_panics_in_drop() {
    let probe = open();
    let ended = probe.start("panics_twice", json!({})).unwrap().wait();
    assert_eq!(ended.status, status::PANIC);
    assert_eq!(ended.result().unwrap_err().message, "panicked without a message");
    assert!(probe.close().is_clean());
}

#[test]
fn a_panic_in_the_tables_functions_is_a_status() {
    let refused = Harness::open::<Probe>(json!({"how_to_open": "panicking"}))
        .err()
        .unwrap();
    assert_eq!(
        (refused.status, refused.failure.message.as_str()),
        (status::PANIC, "no power")
    );
    let refused = Harness::open::<Probe>(json!({"how_to_open": "without_tools"}))
        .err()
        .unwrap();
    assert_eq!(
        (refused.status, refused.failure.message.as_str()),
        (status::PANIC, "no tools today")
    );
    let refused = open().halt(&["glass"], false).unwrap_err();
    assert_eq!(refused.status, status::PANIC);
    assert_eq!(refused.failure.message, "the glass cannot be halted");
}

#[test]
fn open_says_why_not() {
    for (config, status, message) in [
        (json!({"how_to_open": "unplugged"}), status::ERR, "unplugged"),
        (
            json!({"offset": "many"}),
            status::BAD_ARGS,
            "configuration: invalid type",
        ),
        (json!(7), status::BAD_ARGS, "configuration: invalid type"),
    ] {
        let refused = Harness::open::<Probe>(config).err().unwrap();
        assert_eq!(refused.status, status, "{refused}");
        assert!(refused.failure.message.contains(message), "{refused}");
    }
}

#[test]
fn no_command_comes_behind_a_halt() {
    let probe = open();
    for emergency in [false, true] {
        let run = probe.start("commands", json!({})).unwrap();
        let _ = run.wait_progress(1);
        probe.halt(&["all"], emergency).unwrap();
        assert_eq!(run.wait().status, status::CANCELLED);
        let state = probe.call("state", json!({})).unwrap();
        assert_eq!(state["sent"], state["sent_at_halt"], "commands after the halt");
    }
    let arm = probe.plan("forever", json!({"x": 1})).unwrap().unwrap().remove(0);
    assert_eq!((arm.subsystems.len(), &arm.params["x"]), (1, &json!(1)));
    let run = probe.start_action("forever", arm, json!({})).unwrap();
    probe.halt(&["leg"], false).unwrap();
    assert_eq!(
        run.wait_for(Duration::from_millis(50)),
        None,
        "a halt of the leg ended the arm"
    );
    probe.halt(&["arm"], false).unwrap();
    assert_eq!(run.wait().status, status::CANCELLED);
    // A read continues.
    let run = probe.start("watches_and_stays", json!({})).unwrap();
    probe.halt(&["all"], true).unwrap();
    assert_eq!(run.wait_for(Duration::from_millis(50)), None);
    assert!(probe.close().is_clean());
}

#[test]
fn a_start_from_before_the_stop_is_refused() {
    let probe = open();
    probe.set_stop_epoch(7);
    probe.call("add", json!({"a": 1, "b": 1})).unwrap();
    probe.set_stop_epoch(6);
    let refused = probe.start("forever", json!({})).err().unwrap();
    assert_eq!(refused.status, status::CANCELLED);
    probe.call("add", json!({"a": 1, "b": 1})).unwrap();
    probe.set_stop_epoch(7);
    let run = probe.start("forever", json!({})).unwrap();
    run.cancel();
    let _ = run.wait();
}

#[test]
fn plans_run_and_conclude() {
    let probe = open();
    assert_eq!(
        probe.invoke("pour", json!({"cups": 3})).unwrap(),
        json!({"poured": 3, "outcome": "completed"})
    );
    let refused = probe.plan("pour", json!({"cups": 0})).unwrap_err();
    assert_eq!(
        (refused.status, refused.failure.kind.as_str()),
        (status::BAD_ARGS, "ValueError")
    );
    assert_eq!(probe.plan("add", json!({"a": 1, "b": 1})).unwrap(), None);
    // A failed call is concluded, too.
    let report = Report {
        outcome: CallOutcome::Failed,
        duration_ms: 1,
        actions: vec![],
    };
    let conclusion = probe.conclude("pour", json!({"cups": 1}), &report).unwrap();
    assert_eq!(
        json!(conclusion),
        json!({"output": {"poured": 0, "outcome": "other"}})
    );
    assert_eq!(probe.conclude("add", json!({}), &report).unwrap(), None);
}

#[test]
fn the_context_knows_who_calls() {
    let who = open().call("who", json!({})).unwrap();
    assert_eq!(
        who,
        json!({
            "call_id": "call-1", "tool": "who", "action": "who", "session": "default", "lang": "en-US",
            "source": "testing", "in_time": true,
        })
    );
}

#[test]
fn progress_reaches_the_host() {
    let probe = open();
    let run = probe.start("reports", json!({})).unwrap();
    assert_eq!(run.wait().status, status::OK);
    let id = run.id();
    let fractions: Vec<Option<f64>> = run.progress().into_iter().map(|report| report.fraction).collect();
    assert_eq!(fractions, [Some(0.25), Some(0.5), Some(0.75), Some(1.0)]);
    probe.cancel(id);
    assert_eq!(run.progress().len(), 4, "progress after the end");
}

#[test]
fn events_reach_the_host() {
    let probe = open();
    probe.call("reports", json!({})).unwrap();
    assert_eq!(probe.wait_event("noticed").data, Some(json!({"what": 1})));
    let latched = probe.wait_event("latched");
    assert_eq!(
        (latched.severity, latched.data),
        (Severity::Error, Some(json!({"reason": "button"})))
    );
    probe.message("some.topic", json!({"n": 1}));
    assert_eq!(
        probe.wait_event("heard").data,
        Some(json!({"topic": "some.topic", "data": {"n": 1}}))
    );
}

#[test]
fn a_request_is_answered() {
    let probe = open();
    assert_eq!(probe.call("asks", json!({})).unwrap_err().kind, "BusyError");
    probe.respond("probe.question", |data| Some(Ok(json!([data]))));
    assert_eq!(
        probe.call_with_bus("asks", json!({"n": 1})).unwrap(),
        json!({"answer": [{"n": 1}]})
    );
    probe.respond("probe.question", |_| {
        Some(Err(Failure::new("TimeoutError", "nobody")))
    });
    assert_eq!(
        probe.call_with_bus("asks", json!({})).unwrap_err(),
        Failure::new("TimeoutError", "nobody")
    );
    probe.respond("probe.question", |_| None);
    let failure = probe.call_with_bus("asks", json!({})).unwrap_err();
    assert_eq!(failure.kind, "TimeoutError", "a host that forgets the answer");
    assert!(probe.close().is_clean());
}

#[test]
fn an_error_keeps_its_cause() {
    let failure = open().call("fails_with_a_cause", json!({})).unwrap_err();
    assert_eq!(failure, Failure::new("ToolError", "no such arm"));
}

#[test]
fn refusals_have_their_status() {
    let probe = open();
    assert_eq!(probe.resume().unwrap_err().failure.message, "fallen over");
    assert_eq!(probe.may_close().unwrap_err().status, status::BUSY);
    probe.safe_stop(json!({})).unwrap();
    assert_eq!(
        probe
            .safe_stop(json!({"offset": 13}))
            .unwrap_err()
            .failure
            .message,
        "no line"
    );
}

#[test]
fn a_thousand_runs_at_once() {
    let probe = open();
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let probe = &probe;
            scope.spawn(move || {
                let runs: Vec<_> = (0..250)
                    .map(|n| (n, probe.start("add", json!({"a": n, "b": thread})).unwrap()))
                    .collect();
                for (n, run) in runs {
                    assert_eq!(run.wait().result().unwrap(), json!({"result": n + thread}));
                }
            });
        }
    });
    assert!(probe.close().is_clean());
}

#[test]
fn close_ends_every_run() {
    let probe = open();
    for tool in ["forever", "watches_and_stays", "cleans_up", "panics_when_dropped"] {
        let run = probe.start(tool, json!({})).unwrap();
        let _ = run.wait_progress(1);
    }
    let begun = Instant::now();
    assert!(probe.close().is_clean());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "took {:?}",
        begun.elapsed()
    );
}

/// Has a distinct id, so that its threads can be told apart from those of parallel tests.
struct Closing {
    dropped: Arc<AtomicBool>,
}

static CLOSED: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicBool = AtomicBool::new(false);

impl Drop for Closing {
    fn drop(&mut self) {
        DROPPED.store(CLOSED.load(Ordering::SeqCst), Ordering::SeqCst);
        self.dropped.store(true, Ordering::SeqCst);
    }
}

impl Toolbox for Closing {
    type Config = NoConfig;

    fn manifest() -> Manifest {
        manifest!("closing")
    }

    async fn open(host: Host, _: NoConfig) -> Result<Self, ToolError> {
        let busy = host.clone();
        host.spawn(async move {
            loop {
                busy.event("tick", json!({}));
                tokio::task::yield_now().await;
            }
        });
        Ok(Self {
            dropped: Arc::default(),
        })
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::read(
            "forever",
            |context: Context<Self>, _: Nothing| async move {
                let _blocking = tokio::task::spawn_blocking(move || {
                    while !context.is_cancelled() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                })
                .await;
                std::future::pending::<Result<Done, ToolError>>().await
            },
        )]
    }

    no_motion!();

    async fn close(&self) {
        CLOSED.store(!self.dropped.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

#[test]
fn close_ends_everything() {
    let threads = || {
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .filter(|name| name.starts_with("toolbox-closing"))
            .count()
    };
    let closing = Harness::open::<Closing>(json!({})).unwrap();
    let _run = closing.start("forever", json!({})).unwrap();
    let _ = closing.wait_event("tick");
    assert!(threads() >= 1);
    assert!(closing.close().is_clean());
    assert_eq!(threads(), 0, "threads after close");
    assert!(
        DROPPED.load(Ordering::SeqCst),
        "close comes before drop, and both before close returns"
    );
}

#[test]
fn two_instances_do_not_mix() {
    let one = Harness::open::<Probe>(json!({"offset": 1})).unwrap();
    let two = Harness::open::<Probe>(json!({"offset": 2})).unwrap();
    assert_eq!(
        one.call("add", json!({"a": 0, "b": 0})).unwrap(),
        json!({"result": 1})
    );
    assert_eq!(
        two.call("add", json!({"a": 0, "b": 0})).unwrap(),
        json!({"result": 2})
    );
    let run = two.start("forever", json!({})).unwrap();
    assert!(one.close().is_clean());
    assert_eq!(run.wait_for(Duration::from_millis(20)), None);
}

struct Careless;

impl Toolbox for Careless {
    type Config = NoConfig;

    fn manifest() -> Manifest {
        manifest!("careless")
    }

    async fn open(_: Host, _: NoConfig) -> Result<Self, ToolError> {
        Ok(Self)
    }

    fn tools(&self) -> Vec<Tool<Self>> {
        vec![Tool::motion("swing", |_: Context<Self>, _: Nothing| async {
            Ok(Done { done: true })
        })]
    }

    no_motion!();
}

#[test]
fn what_moves_has_a_halt() {
    // SAFETY: the pointer is good as long as the table, which the caller has.
    let halts = |table: &Table| unsafe { (*table.as_ptr()).halt.is_some() };
    assert!(!halts(&Table::of::<Careless>()) && halts(&Table::of::<Probe>()));
    let careless = Harness::open::<Careless>(json!({})).unwrap();
    careless.halt(&["all"], true).unwrap();
    let listed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| careless.tools().len()));
    let said = *listed.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(
        said,
        "tool swing is of effect motion, and the toolbox has no halt"
    );
}

/// Strings and pointers that only a faulty host sends.
#[test]
fn text_that_is_not_utf8() {
    let table = Table::of::<Probe>();
    // SAFETY: the table was just made and lives to the end of the test.
    let functions = unsafe { &*table.as_ptr() };
    let bad = [0xff_u8, 0xfe];
    let text = abi::Str {
        ptr: bad.as_ptr().cast(),
        len: 2,
    };
    let null = abi::Str {
        ptr: std::ptr::null(),
        len: 2,
    };
    let empty = abi::Str {
        ptr: std::ptr::null(),
        len: 0,
    };
    let host = abi::Host {
        size: size_of::<abi::Host>() as u64,
        ctx: std::ptr::null_mut(),
        log: None,
        complete: None,
        progress: None,
        event: None,
        request: None,
    };
    let mut instance: *mut c_void = std::ptr::null_mut();
    let no_bytes = std::ptr::null_mut();
    // SAFETY: toolbox.h allows null for `error`; the strings live to the end of the test.
    unsafe {
        assert_eq!(
            functions.open.unwrap()(&raw const host, text, &raw mut instance, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.open.unwrap()(&raw const host, null, &raw mut instance, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.open.unwrap()(std::ptr::null(), empty, &raw mut instance, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.open.unwrap()(&raw const host, empty, &raw mut instance, no_bytes),
            status::OK
        );
        assert_eq!(
            functions.start.unwrap()(instance, 1, text, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.plan.unwrap()(instance, text, empty, no_bytes),
            status::BAD_ARGS
        );
        assert_eq!(
            functions.start.unwrap()(std::ptr::null_mut(), 1, empty, no_bytes),
            status::BAD_ARGS
        );
        // A stop is never refused.
        assert_eq!(functions.halt.unwrap()(instance, text, 1, no_bytes), status::OK);
        assert_eq!(functions.halt.unwrap()(instance, empty, 0, no_bytes), status::OK);
        functions.message.unwrap()(instance, text, text);
        functions.on_response.unwrap()(instance, 1, status::OK, text);
        functions.cancel.unwrap()(instance, 1);
        functions.close.unwrap()(instance);
        functions.close.unwrap()(std::ptr::null_mut());
    }
}

/// A host with fewer functions than the SDK knows.
#[test]
fn an_older_host() {
    let table = Table::of::<Probe>();
    // SAFETY: the table was just made and lives to the end of the test.
    let functions = unsafe { &*table.as_ptr() };
    // Only size and ctx; the memory after them is not the host's.
    let host: [u64; 2] = [16, 0];
    let mut instance: *mut c_void = std::ptr::null_mut();
    let empty = abi::Str {
        ptr: std::ptr::null(),
        len: 0,
    };
    // SAFETY: the table begins with its size, which is what this test is about.
    unsafe {
        let opened = functions.open.unwrap()(
            host.as_ptr().cast(),
            empty,
            &raw mut instance,
            std::ptr::null_mut(),
        );
        assert_eq!(opened, status::OK);
        functions.close.unwrap()(instance);
    }
}
