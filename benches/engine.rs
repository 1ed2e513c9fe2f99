//! Costs of the engine: a table of figures with goals.
//!
//! The toolbox is in memory and its actions complete at once, so that only the engine is measured. Run it with `cargo
//! bench --bench engine`.
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]
#![allow(clippy::expect_used, reason = "a bench that cannot run has no figures")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{
    CallEnd, CallRequest, Defaults, Engine, Halt, Limits, NoAnswer, Plan, ProgressSink, RunId, RunResult,
    Toolbox,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use ovos_toolbox_wire::{
    Action, CallOutcome, Completion, Conclusion, Effect, Failure, Object, Report, Start,
};

/// Figures are the median of this many runs.
const RUNS: usize = 7;
const ACTIONS: usize = 10_000;

/// Returns the given plan; its actions do nothing and complete at once.
struct Nothing(Vec<Action>);

impl Toolbox for Nothing {
    fn plan<'a>(
        &'a self,
        _: &'a str,
        _: &'a Object,
    ) -> BoxFuture<'a, Result<Option<ovos_toolbox_wire::Plan>, NoAnswer>> {
        ready(Ok(Some(self.0.clone().into()))).boxed()
    }
    fn start(&self, _: RunId, _: Start, _: Option<ProgressSink>) -> BoxFuture<'static, RunResult> {
        ready(RunResult::Reported(Completion::Output(serde_json::Value::Null))).boxed()
    }
    fn cancel(&self, _: RunId) {}
    fn conclude<'a>(
        &'a self,
        _: &'a str,
        _: &'a Object,
        _: &'a Report,
    ) -> BoxFuture<'a, Result<Option<Conclusion>, Failure>> {
        ready(Ok(Some(Conclusion::Output(serde_json::Value::Null)))).boxed()
    }
    fn halt(&self, _: Halt) -> BoxFuture<'static, Result<(), NoAnswer>> {
        ready(Ok(())).boxed()
    }
    fn resume(&self) -> BoxFuture<'static, Result<(), NoAnswer>> {
        ready(Ok(())).boxed()
    }
}

/// `count` actions in waves of `width`, each waiting for its neighbour in the wave before, on `subsystems` subsystems.
fn layers(count: usize, width: usize, subsystems: usize) -> Vec<Action> {
    let action = |n: usize| Action {
        id: Some(format!("action-{n}")),
        subsystems: (subsystems > 0)
            .then(|| format!("subsystem-{}", n % subsystems))
            .into_iter()
            .collect(),
        dependencies: (n >= width)
            .then(|| format!("action-{}", n - width))
            .into_iter()
            .collect(),
        ..Action::named("step")
    };
    (0..count).map(action).collect()
}

/// Two waves; every action of the second depends on all of the first, by one name.
fn fan(count: usize) -> Vec<Action> {
    let half = count / 2;
    let first = (0..half).map(|n| Action {
        id: Some(format!("first-{n}")),
        ..Action::named("first")
    });
    let second = (half..count).map(|n| Action {
        id: Some(format!("second-{n}")),
        dependencies: vec!["first".to_owned()],
        ..Action::named("second")
    });
    first.chain(second).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn defaults() -> Defaults {
    Defaults {
        effect: Effect::Motion,
        timeout: Duration::from_secs(10),
    }
}

fn planning(actions: &[Action], runs: usize) -> Duration {
    let time = |_| {
        let actions = actions.to_vec();
        let start = Instant::now();
        let plan = Plan::new(actions, defaults()).expect("it can be planned");
        let took = start.elapsed();
        drop(plan);
        took
    };
    median((0..runs).map(time).collect())
}

fn request(number: usize) -> CallRequest {
    CallRequest {
        call_id: format!("call-{number}"),
        toolbox_id: "bench".to_owned(),
        generation: 1,
        tool: "t".to_owned(),
        effect: Effect::Motion,
        action_timeout: None,
        args: Object::new(),
        session_id: None,
        lang: None,
        source: None,
        received: Instant::now(),
        timeout: None,
        operator: false,
        content: false,
        facts: None,
    }
}

/// A whole call: plan, reservation, waves, report and conclusion.
fn running(actions: Vec<Action>) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let engine = Engine::new(16, HashMap::new());
    let toolbox: Arc<dyn Toolbox> = Arc::new(Nothing(actions));
    engine.attach("bench", 1, toolbox, Limits::default());
    let lease = engine.lease("bench", 1).expect("it is attached");
    let time = |number| {
        let start = Instant::now();
        let end = runtime.block_on(engine.call(&lease, request(number)));
        let took = start.elapsed();
        let CallEnd::Ran { report, .. } = end else {
            panic!("{end:?}");
        };
        assert_eq!(report.outcome, CallOutcome::Completed);
        took
    };
    median((0..RUNS).map(time).collect())
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        // `cargo test --benches` only checks that it runs.
        running(layers(100, 10, 10));
        return;
    }
    println!("{:<58} {:>12} {:>12}", "engine", "figure", "goal");
    let graphs = [
        ("one wave, no subsystems", layers(ACTIONS, ACTIONS, 0)),
        ("one wave, 100 subsystems", layers(ACTIONS, ACTIONS, 100)),
        ("one wave, one subsystem", layers(ACTIONS, ACTIONS, 1)),
        ("one wave, 10,000 subsystems", layers(ACTIONS, ACTIONS, ACTIONS)),
        ("100 waves of 100, 100 subsystems", layers(ACTIONS, 100, 100)),
        ("10,000 waves of one", layers(ACTIONS, 1, 1)),
    ];
    for (name, actions) in graphs {
        let took = running(actions).as_secs_f64() * 1e6 / ACTIONS as f64;
        println!(
            "{:<58} {took:>9.2} µs {:>12}",
            format!("a no-op action, {name}"),
            "< 3 µs"
        );
    }
    let took = running(layers(100_000, 100_000, 0)).as_secs_f64() * 1e6 / 100_000.0;
    println!(
        "{:<58} {took:>9.2} µs {:>12}",
        "a no-op action, one wave of 100,000", "as 10,000"
    );
    for (name, width) in [
        ("waves of 10, 16 subsystems", 10),
        ("one wave, 16 subsystems", usize::MAX),
    ] {
        let mut base = 0.0;
        for count in [1000, 100_000, 1_000_000] {
            let runs = if count > 100_000 { 3 } else { RUNS };
            let took = planning(&layers(count, width, 16), runs).as_secs_f64() * 1e6 / count as f64;
            if count == 1000 {
                base = took;
            }
            println!(
                "{:<58} {took:>9.2} µs {:>12}",
                format!("planning an action of {count}, {name} ({:.1} times)", took / base),
                "linear"
            );
        }
    }
    let took = planning(&fan(4000), RUNS).as_secs_f64() * 1e9 / (2000.0 * 2000.0);
    println!(
        "{:<58} {took:>9.2} ns {:>12}",
        "planning a dependency of 4,000,000 (by one name)", "none"
    );
}
