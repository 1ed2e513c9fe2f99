//! Halts: which of them reach a toolbox, in which order, whatever else it does.
use futures_util::FutureExt;
use ovos_toolbox_wire::{Completion, Object};
use serde_json::json;

use crate::support::fixture::{FixtureFolder, action, all, completed, start, within};
use crate::support::rig::Rig;
use engine::{RunId, RunResult, Toolbox};

#[tokio::test]
async fn an_emergency_halt_drops_older_starts_and_a_newer_one_begins() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures.open("well_behaved").await;
    within(toolbox.halt(all(true, 5))).await.unwrap();
    assert_eq!(
        within(toolbox.start(RunId(1), action("go", 4), None)).await,
        RunResult::Cancelled
    );
    assert!(matches!(
        within(toolbox.start(RunId(2), action("go", 5), None)).await,
        RunResult::Reported(_)
    ));
    assert_eq!(
        seen.count("started"),
        1,
        "the older start never reached the toolbox"
    );
    assert_eq!((toolbox.counts().stale_starts, toolbox.stop_epoch()), (1, 5));
    // Holding position is no stop: what was planned before it still runs.
    within(toolbox.halt(all(false, 9))).await.unwrap();
    assert!(matches!(
        within(toolbox.start(RunId(3), action("go", 5), None)).await,
        RunResult::Reported(_)
    ));
    within(toolbox.resume()).await.unwrap();
}

/// The order of the requests, and what the toolbox does meanwhile, change nothing. A gentle halt would undo what a backend
/// does in an emergency.
#[tokio::test]
#[allow(clippy::print_stderr, reason = "the figures")]
async fn no_gentle_halt_comes_after_an_emergency_halt_until_the_resume() {
    const ROUNDS: u64 = 10_000;
    let fixtures = FixtureFolder::new();
    let (toolbox, _) = fixtures.open("notes_halts").await;
    for round in 1..=ROUNDS {
        let run = toolbox.start(RunId(round), action("slow", round), None);
        let orders: &[bool] = match round % 3 {
            0 => &[false, true],
            1 => &[true, false],
            _ => &[false, true, false],
        };
        let halts = orders
            .iter()
            .map(|emergency| toolbox.halt(all(*emergency, round + 1)));
        for word in within(futures_util::future::join_all(halts)).await {
            word.unwrap();
        }
        drop(run);
        // Answered after the start has returned, when the halts that are repeated then have been called.
        within(toolbox.may_close()).await.unwrap();
        within(toolbox.resume()).await.unwrap();
    }
    let RunResult::Reported(Completion::Output(seen)) =
        within(toolbox.start(RunId(ROUNDS + 1), action("go", ROUNDS + 1), None)).await
    else {
        panic!("it runs after the resume")
    };
    assert_eq!(
        (&seen["after"], &seen["undone"]),
        (&json!(0), &json!(0)),
        "{seen}"
    );
    eprintln!("{ROUNDS} races: {seen}");
    // A gentle halt that comes first is called.
    assert!(seen["gentle"].as_u64().unwrap() > 0, "{seen}");
    assert!(seen["emergencies"].as_u64().unwrap() >= ROUNDS, "{seen}");
}

/// A gentle halt that returns late has undone what the emergency halt did.
#[tokio::test]
async fn an_emergency_halt_is_repeated_after_a_gentle_one_that_it_overtook() {
    let fixtures = FixtureFolder::new();
    let (toolbox, seen) = fixtures
        .open_with("notes_halts", &[("GENTLE_US", "150000")], "{}")
        .await;
    let gentle = toolbox.halt(all(false, 1));
    seen.wait_for("halting", 1).await;
    let emergency = toolbox.halt(all(true, 2));
    within(emergency).await.unwrap();
    within(gentle).await.unwrap();
    within(toolbox.resume()).await.unwrap();
    let seen = within(toolbox.start(RunId(1), action("go", 2), None)).await;
    let RunResult::Reported(Completion::Output(seen)) = seen else {
        panic!("it runs after the resume: {seen:?}")
    };
    let halts = ["gentle", "after", "emergencies", "undone"].map(|key| seen[key].as_u64());
    assert_eq!(halts, [1, 1, 2, 0].map(Some), "{seen}");
}

/// Cancel, halt and resume do not wait for plan, start and conclude.
#[tokio::test]
async fn a_stop_gets_through_while_plan_start_and_conclude_hang() {
    let (args, report) = (Object::new(), completed());
    for hangs in ["plan", "start", "conclude"] {
        let fixtures = FixtureFolder::new();
        let (toolbox, seen) = fixtures.open("hangs_until_resumed").await;
        let hanging = match hangs {
            "plan" => toolbox.plan("move", &args).map(|plan| plan == Ok(None)).boxed(),
            "start" => start(&toolbox, 1, "go")
                .map(|ended| matches!(ended, RunResult::Reported(Completion::Output(_))))
                .boxed(),
            _ => {
                let conclusion = toolbox.conclude("move", &args, &report);
                conclusion.map(|conclusion| conclusion == Ok(None)).boxed()
            }
        };
        seen.wait_for("hanging", 1).await;
        let behind = start(&toolbox, 2, "go");
        toolbox.cancel(RunId(2));
        assert_eq!(within(behind).await, RunResult::Cancelled, "{hangs}");
        within(toolbox.halt(all(true, 1))).await.unwrap();
        seen.wait_for("halted_emergency", 1).await;
        within(toolbox.resume()).await.unwrap();
        assert!(within(hanging).await, "{hangs} came to nothing");
    }
}

#[tokio::test]
async fn a_stopped_copy_gets_no_gentler_halt_when_it_is_replaced() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    rig.reload().await;
    within(rig.get("arm").toolbox.halt(all(true, 1))).await.unwrap();
    rig.add("arm", "2", &[]);
    rig.reload().await;
    rig.drains.until_closed(1).await;
    assert_eq!(
        (
            rig.seen.count("halted"),
            rig.seen.count("halted_emergency"),
            rig.seen.count("closed")
        ),
        (0, 2, 1)
    );
    assert_eq!(*rig.drains.closed.lock().unwrap(), [("arm".to_owned(), 1)]);
}

#[tokio::test]
async fn a_stop_is_known_to_the_next_generation() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    rig.reload().await;
    within(rig.get("arm").toolbox.halt(all(true, 3))).await.unwrap();
    rig.add("arm", "2", &[]);
    rig.reload().await;
    let toolbox = rig.get("arm");
    assert_eq!(
        within(toolbox.toolbox.start(RunId(1), action("go", 2), None)).await,
        RunResult::Cancelled
    );
    assert_eq!(toolbox.toolbox.counts().stale_starts, 1);
}
