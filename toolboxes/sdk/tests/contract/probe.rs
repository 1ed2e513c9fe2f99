//! The toolbox under test: it has a tool for every promise.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::tokio;
use ovos_toolbox_sdk::wire::CallOutcome;

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Config {
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

/// The toolbox.
pub(crate) struct Probe {
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
pub(crate) struct Nothing {}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    pub(crate) done: bool,
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
