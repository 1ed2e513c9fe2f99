//! A well-behaved toolbox: what the engine can rely on from open to close, and what a reload changes.
//!
//! Included by `plugin_lifecycle.rs` and `process_isolation.rs`, so that both kinds of isolation keep the same promises.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

use std::sync::Arc;

use crate::fixture::{DEADLINE, Workshop, action, all, error, output, run, start, within};
use crate::rig::{Rig, changes};
use engine::{Ended, RunId, StopTarget, Toolbox};
use futures_util::FutureExt;
use host::{ReloadReport, State, ToolboxConfig};
use ovos_toolbox_wire::{CallOutcome, Completion, Conclusion, Object, Report};
use serde_json::{Value, json};

fn completed() -> Report {
    Report {
        outcome: CallOutcome::Completed,
        duration_ms: 1,
        actions: Vec::new(),
    }
}

#[tokio::test]
async fn lists_plans_runs_and_concludes() {
    let shop = Workshop::new();
    let (toolbox, _) = shop.open_with("well_behaved", &[], r#"{"speed":3}"#).await;
    let tools = within(toolbox.tools()).await.unwrap();
    assert_eq!(
        tools
            .tools
            .iter()
            .map(|t| t.definition.name.as_str())
            .collect::<Vec<_>>(),
        ["work", "move"]
    );
    assert!(tools.dropped.is_empty());

    let args = Object::new();
    let plan = within(toolbox.plan("move", &args)).await.unwrap().unwrap();
    assert_eq!(
        plan.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
        ["lift", "turn"]
    );
    assert_eq!(
        within(toolbox.plan("work", &args)).await.unwrap(),
        None,
        "TB_UNKNOWN_TOOL means: no plan of its own"
    );
    let mut impossible = Object::new();
    impossible.insert("impossible".into(), json!(1));
    assert_eq!(
        within(toolbox.plan("move", &impossible))
            .await
            .unwrap_err()
            .into_failure()
            .to_string(),
        "PlanError: cannot be done"
    );

    assert_eq!(output(&toolbox, 1).await["config"], json!({"speed": 3}));
    assert_eq!(error(run(&toolbox, 2, "refuse").await), "ValueError: refused");

    let report = completed();
    let concluded = within(toolbox.conclude("move", &args, &report)).await.unwrap();
    assert_eq!(concluded, Some(Conclusion::Output(json!({"success": true}))));
    assert_eq!(
        within(toolbox.conclude("work", &args, &report)).await.unwrap(),
        None
    );
    assert_eq!(toolbox.counts(), host::Counts::default());
}

#[tokio::test]
async fn a_cancel_ends_a_run_and_is_harmless_otherwise() {
    let shop = Workshop::new();
    let (toolbox, seen) = shop.open("well_behaved").await;
    let waiting = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    toolbox.cancel(RunId(1));
    assert_eq!(within(waiting).await, Ended::Cancelled);
    toolbox.cancel(RunId(1));
    toolbox.cancel(RunId(77));
    assert_eq!(output(&toolbox, 2).await["version"], "1");
}

#[tokio::test]
async fn an_emergency_halt_drops_older_starts_and_a_newer_one_begins() {
    let shop = Workshop::new();
    let (toolbox, seen) = shop.open("well_behaved").await;
    within(toolbox.halt(all(true, 5))).await.unwrap();
    assert_eq!(
        within(toolbox.start(RunId(1), action("go", 4), None)).await,
        Ended::Cancelled
    );
    assert!(matches!(
        within(toolbox.start(RunId(2), action("go", 5), None)).await,
        Ended::Reported(_)
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
        Ended::Reported(_)
    ));
    within(toolbox.resume()).await.unwrap();
}

#[tokio::test]
async fn messages_reach_subscribers_and_requests_are_answered_once() {
    let shop = Workshop::new();
    let (toolbox, seen) = shop.open("well_behaved").await;
    toolbox.message("not.subscribed", "{}");
    toolbox.message("speak", r#"{"ask":1}"#);
    seen.wait_for("heard", 1).await;
    assert_eq!(output(&toolbox, 1).await["last"], "asked refused");
    let request = seen.requests().remove(0);
    assert_eq!(
        (request.topic.as_str(), request.data),
        ("time.ask", json!({"zone": "utc"}))
    );
    assert!(toolbox.respond(request.id, &Ok(json!({"time": "noon"}))));
    assert!(
        !toolbox.respond(request.id, &Ok(json!({}))),
        "the second answer has nowhere to go"
    );
    seen.wait_for("answered", 1).await;
    let output = output(&toolbox, 2).await;
    assert_eq!(
        (&output["last"], &output["messages"]),
        (&json!("answer 0 1"), &json!(1))
    );
}

#[tokio::test]
async fn closing_ends_every_run_and_later_ones_say_so() {
    let shop = Workshop::new();
    let (toolbox, seen) = shop.open("well_behaved").await;
    let waiting = start(&toolbox, 1, "wait");
    seen.wait_for("started", 1).await;
    assert!(within(toolbox.close()).await);
    assert_eq!(within(waiting).await, Ended::Cancelled);
    assert_eq!(seen.count("closed"), 1);
    let Ended::Lost(failure) = run(&toolbox, 2, "go").await else {
        panic!("a closed toolbox runs nothing")
    };
    assert_eq!(failure.kind, "ToolboxClosed");
    assert_eq!(
        within(toolbox.halt(all(true, 1))).await.unwrap_err().kind,
        "ToolboxClosed"
    );
    assert!(within(toolbox.close()).await, "closing twice is closing once");
}

#[tokio::test]
async fn dropping_a_toolbox_closes_it() {
    let shop = Workshop::new();
    let (toolbox, seen) = shop.open("well_behaved").await;
    drop(toolbox);
    seen.wait_for("closed", 1).await;
}

/// What a reload should say: every list that is not given is empty.
#[track_caller]
pub(crate) fn check(report: &ReloadReport, expected: Value) {
    let mut all = json!({"added": [], "removed": [], "replaced": [], "unchanged": [], "broken": 0});
    all.as_object_mut()
        .unwrap()
        .extend(expected.as_object().unwrap().clone());
    assert_eq!(changes(report), all, "broken: {:?}", report.broken);
}

#[tokio::test]
async fn a_reload_is_a_diff() {
    let rig = Rig::new();
    let gone = rig.add("gone", "1", &[]);
    rig.add("next", "1", &[]);
    rig.add("same", "1", &[]);
    check(&rig.reload().await, json!({"added": ["gone", "next", "same"]}));
    let same = rig.get("same");
    assert_eq!(
        (same.generation, &same.state, same.tools.tools.len()),
        (1, &State::Ready, 2)
    );
    assert_eq!(same.path, rig.shop.path().join("same.so"));

    std::fs::remove_file(gone).unwrap();
    rig.add("next", "2", &[]);
    rig.add("new", "1", &[]);
    std::fs::write(rig.shop.path().join("broken.so"), "no library").unwrap();
    let report = rig.reload().await;
    check(
        &report,
        json!({"added": ["new"], "removed": ["gone"], "replaced": ["next"], "unchanged": ["same"], "broken": 1}),
    );
    assert!(report.broken[0].reason.contains("broken.so"), "{report:?}");
    assert_eq!(rig.live().failed, report.broken);
    assert!(rig.live().get("gone").is_none());
    assert_eq!(
        (rig.version("next").await, rig.get("next").generation),
        ("2".into(), 2)
    );
    assert_eq!(
        (rig.version("same").await, rig.get("same").generation),
        ("1".into(), 1)
    );
    rig.seen.wait_for("closed", 2).await;
    let mut drained = rig.drains.asked.lock().unwrap().clone();
    drained.sort();
    assert_eq!(drained, [("gone".into(), 1), ("next".into(), 1)]);
    assert_eq!(rig.seen.count("halted"), 2, "each is halted before it is closed");

    // Touched, or moved: the contents decide.
    let (from, to) = (rig.shop.path().join("same.so"), rig.shop.path().join("zzz.so"));
    std::fs::rename(from, &to).unwrap();
    std::fs::remove_file(rig.shop.path().join("broken.so")).unwrap();
    check(&rig.reload().await, json!({"unchanged": ["new", "next", "same"]}));
    assert_eq!((rig.get("same").path.clone(), rig.live().failed.len()), (to, 0));
}

#[tokio::test]
async fn a_replacement_that_fails_leaves_the_working_copy() {
    let rig = Rig::new();
    let path = rig.add("arm", "1", &[]);
    check(&rig.reload().await, json!({"added": ["arm"]}));
    let whole = std::fs::read(&path).unwrap();
    for (bytes, reason) in [(&b"garbage"[..], "arm.so"), (&whole[..whole.len() / 2], "arm.so")] {
        let made = rig.shop.path().join(".new");
        std::fs::write(&made, bytes).unwrap();
        std::fs::rename(&made, &path).unwrap();
        let report = rig.reload().await;
        check(&report, json!({"broken": 1}));
        assert!(report.broken[0].reason.contains(reason), "{report:?}");
        assert_eq!(report.broken[0].toolbox_id.as_deref(), Some("arm"));
        assert_eq!(
            (rig.version("arm").await, rig.get("arm").generation),
            ("1".into(), 1)
        );
    }
    // One that loads and does not open.
    rig.add("arm", "2", &[]);
    rig.configure("arm", &json!({"refuse_open": true}));
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0].reason.contains("HardwareError: no device"),
        "{report:?}"
    );
    assert_eq!(rig.version("arm").await, "1");
    rig.configure("arm", &json!({}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.version("arm").await, "2");
}

#[tokio::test]
async fn a_changed_configuration_counts_as_a_change() {
    let rig = Rig::new();
    let schema = r#"",\"config_schema\":{\"properties\":{\"speed\":{\"type\":\"number\"}}}""#;
    rig.add("arm", "1", &[("EXTRA", schema)]);
    rig.configure("arm", &json!({"speed": 1}));
    check(&rig.reload().await, json!({"added": ["arm"]}));
    check(&rig.reload().await, json!({"unchanged": ["arm"]}));
    rig.configure("arm", &json!({"speed": 2}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.output("arm").await["config"], json!({"speed": 2}));
    rig.configure("arm", &json!({"speed": "fast"}));
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(report.broken[0].reason.contains("speed: expected"), "{report:?}");
    assert_eq!(rig.output("arm").await["config"], json!({"speed": 2}));
    let off = ToolboxConfig {
        enabled: false,
        ..ToolboxConfig::default()
    };
    rig.configs.lock().unwrap().insert("arm".into(), off);
    check(&rig.reload().await, json!({"removed": ["arm"]}));
}

const EXCLUSIVE: (&str, &str) = ("EXTRA", r#"",\"exclusive\":true""#);

#[tokio::test]
async fn an_exclusive_toolbox_closes_before_the_next_opens_and_comes_back_when_that_fails() {
    let rig = Rig::new();
    rig.add("arm", "1", &[EXCLUSIVE]);
    check(&rig.reload().await, json!({"added": ["arm"]}));
    rig.add("arm", "2", &[EXCLUSIVE]);
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    let order: Vec<String> = rig
        .seen
        .events()
        .into_iter()
        .map(|(_, event)| event.kind)
        .collect();
    assert_eq!(order, ["opened", "halted", "closed", "opened"]);
    let mut states: Vec<State> = rig
        .published
        .lock()
        .unwrap()
        .iter()
        .filter_map(|live| Some(live.get("arm")?.state.clone()))
        .collect();
    states.dedup();
    assert_eq!(states, [State::Ready, State::Reloading, State::Ready]);

    // The new section opens nothing: version 2 is opened again with the old one.
    rig.configure("arm", &json!({"refuse_open": 1}));
    rig.add("arm", "3", &[EXCLUSIVE]);
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0]
            .reason
            .contains("the version before it was opened again"),
        "{report:?}"
    );
    assert_eq!(
        (rig.version("arm").await, &rig.get("arm").state),
        ("2".into(), &State::Ready)
    );
    rig.configure("arm", &json!({}));
    check(&rig.reload().await, json!({"replaced": ["arm"]}));
    assert_eq!(rig.version("arm").await, "3");
}

#[tokio::test]
async fn an_exclusive_toolbox_that_neither_opens_says_so_until_it_does() {
    let rig = Rig::new();
    let flag = rig.shop.path().join("device");
    std::fs::write(&flag, "").unwrap();
    let device = format!("\"{}\"", flag.display());
    let build = |version: &str| {
        let version = format!("\"{version}\"");
        rig.shop.build_as(
            "cam",
            "needs_device",
            &[("VERSION", &version), ("DEVICE", &device), EXCLUSIVE],
        );
    };
    build("1");
    check(&rig.reload().await, json!({"added": ["hostile"]}));
    std::fs::remove_file(&flag).unwrap();
    build("2");
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0].reason.contains("does not open again either"),
        "{report:?}"
    );
    let failed = rig.get("hostile");
    assert!(
        matches!(&failed.state, State::Failed(reason) if reason.contains("unplugged")),
        "{:?}",
        failed.state
    );
    assert!(
        matches!(run(&*failed.toolbox, 900, "go").await, Ended::Lost(_)),
        "a closed copy runs nothing"
    );
    std::fs::write(&flag, "").unwrap();
    check(&rig.reload().await, json!({"replaced": ["hostile"]}));
    assert_eq!(
        (rig.version("hostile").await, &rig.get("hostile").state),
        ("2".into(), &State::Ready)
    );
}

#[tokio::test]
async fn a_toolbox_may_refuse_to_be_replaced_or_removed() {
    let rig = Rig::new();
    let path = rig.add("arm", "1", &[]);
    rig.configure("arm", &json!({"recording": true}));
    check(&rig.reload().await, json!({"added": ["arm"]}));
    rig.add("arm", "2", &[]);
    let report = rig.reload().await;
    check(&report, json!({"broken": 1}));
    assert!(
        report.broken[0]
            .reason
            .contains("refuses to be replaced now: recording"),
        "{report:?}"
    );
    std::fs::remove_file(path).unwrap();
    let report = rig.reload().await;
    assert!(
        report.broken[0]
            .reason
            .contains("refuses to be removed now: recording"),
        "{report:?}"
    );
    assert_eq!(rig.version("arm").await, "1");
}

#[tokio::test]
async fn the_first_file_of_an_id_wins() {
    let rig = Rig::new();
    let first = rig.shop.build_as("a", "well_behaved", &[("VERSION", "\"1\"")]);
    let second = rig.shop.build_as("b", "well_behaved", &[("VERSION", "\"2\"")]);
    let report = rig.reload().await;
    check(&report, json!({"added": ["good"], "broken": 1}));
    let reason = &report.broken[0].reason;
    assert!(
        reason.contains(&*first.to_string_lossy()) && reason.contains(&*second.to_string_lossy()),
        "{reason}"
    );
    std::fs::remove_file(first).unwrap();
    check(&rig.reload().await, json!({"replaced": ["good"]}));
    assert_eq!(rig.version("good").await, "2");
}

#[tokio::test]
async fn requests_for_a_reload_share_one() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    let reports = within(futures_util::future::join_all(
        (0..20).map(|_| rig.manager.reload()),
    ))
    .await;
    assert_eq!(
        reports.iter().filter(|report| report.added == ["arm"]).count(),
        20,
        "{reports:?}"
    );
    assert_eq!(rig.seen.count("opened"), 1);
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
        Ended::Cancelled
    );
    assert_eq!(toolbox.counts().stale_starts, 1);
}

#[tokio::test]
async fn runs_of_the_old_copy_do_not_notice_a_swap_until_they_are_drained() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    rig.add("leg", "1", &[]);
    rig.reload().await;
    let (arm, leg) = (rig.get("arm"), rig.get("leg"));
    let (held, left_alone) = (
        start(&*arm.toolbox, 500, "wait"),
        start(&*leg.toolbox, 501, "wait"),
    );
    rig.seen.wait_for("started", 2).await;
    rig.add("arm", "2", &[]);
    rig.reload().await;
    assert_eq!(rig.version("arm").await, "2");
    // This drain returns at once, so the old copy is closed, which ends its run.
    assert_eq!(within(held).await, Ended::Cancelled);
    leg.toolbox.cancel(RunId(501));
    assert_eq!(within(left_alone).await, Ended::Cancelled);
    assert_eq!(rig.get("leg").generation, 1);
}

#[tokio::test]
async fn tools_are_asked_again_when_they_changed() {
    let rig = Rig::new();
    rig.shop.build("tools_change", &[]);
    check(&rig.reload().await, json!({"added": ["hostile"]}));
    assert_eq!(rig.get("hostile").tools.tools.len(), 1);
    rig.version("hostile").await;
    rig.seen.wait_for("tools_changed", 1).await;
    rig.published_until(|live| {
        live.get("hostile")
            .is_some_and(|toolbox| toolbox.tools.tools.len() == 2)
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_comes_later_moves_nothing_that_cannot_be_halted() {
    let rig = Rig::new();
    rig.shop
        .build("tools_change", &[("HALT", "NULL"), ("SECOND", "\"motion\"")]);
    rig.reload().await;
    rig.version("hostile").await;
    rig.published_until(|live| {
        live.get("hostile")
            .is_some_and(|toolbox| !toolbox.tools.dropped.is_empty())
    })
    .await;
    assert_eq!(rig.get("hostile").tools.tools.len(), 1);
}

#[tokio::test]
async fn shutdown_halts_and_closes_everything() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    rig.add("leg", "1", &[]);
    rig.reload().await;
    let waiting = start(&*rig.get("arm").toolbox, 1, "wait");
    rig.seen.wait_for("started", 1).await;
    assert!(within(rig.manager.shutdown(DEADLINE)).await);
    assert_eq!(within(waiting).await, Ended::Cancelled);
    assert_eq!(rig.seen.count("closed"), 2);
    // One more when the halt found the start still in progress.
    assert!(rig.seen.count("halted") >= 2);
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_toolbox_that_does_not_open() {
    let rig = Rig::new();
    rig.add("leg", "1", &[]);
    rig.reload().await;
    rig.shop.build_as("arm", "open_hangs", &[("ID", "\"arm\"")]);
    let shutdown = async {
        rig.seen.wait_for("opening", 1).await;
        rig.manager.shutdown(DEADLINE / 2).await
    };
    let (report, closed) = tokio::join!(rig.reload(), within(shutdown));
    assert!(closed, "{report:?}");
    assert!(report.broken[0].reason.contains("the service ends"), "{report:?}");
    assert_eq!((rig.seen.count("halted"), rig.seen.count("closed")), (1, 1));
}

#[tokio::test]
async fn messages_and_answers_find_their_copy() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    rig.reload().await;
    rig.manager.deliver_message("speak", r#"{"ask":1}"#);
    rig.seen.wait_for("heard", 1).await;
    // The request follows in the same call, and this run comes after it.
    rig.version("arm").await;
    let origin = rig.seen.events()[0].0.clone();
    let request = rig.seen.requests().remove(0);
    assert!(
        rig.manager
            .deliver_response(&origin, request.id, &Ok(json!({"time": "noon"})))
    );
    assert!(!rig.manager.deliver_response(&origin, request.id, &Ok(json!({}))));
    rig.seen.wait_for("answered", 1).await;
}

#[tokio::test]
async fn a_replaced_copy_takes_no_new_calls_and_is_closed_when_its_last_call_has_ended() {
    let rig = Rig::new();
    rig.add("arm", "1", &[]);
    rig.reload().await;
    let engine = &rig.drains.engine;
    let call = engine.lease("arm", 1).expect("it serves");
    rig.add("arm", "2", &[]);
    rig.reload().await;
    within(async {
        while engine.lease("arm", 1).is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(engine.lease("arm", 2).is_some());
    engine.stop(&StopTarget::All, "a test").await;
    // A stop reaches both copies, which say so on their own time.
    rig.seen.wait_for("halted_emergency", 2).await;
    let newer = within(call.toolbox().start(RunId(700), action("go", u64::MAX), None)).await;
    assert!(
        matches!(newer, Ended::Reported(_)),
        "a call that holds it goes on: {newer:?}"
    );
    assert_eq!(rig.seen.count("closed"), 0);
    drop(call);
    rig.drains.until_closed(1).await;
    assert_eq!(rig.seen.count("closed"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load_lose_no_run() {
    let rig = Arc::new(Rig::new());
    let versions = ["1", "2"].map(|version| std::fs::read(rig.add("arm", version, &[])).unwrap());
    rig.reload().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (rig, stop) = (Arc::clone(&rig), stop.clone());
            tokio::spawn(async move {
                let mut runs = 0;
                while !stop.is_cancelled() {
                    let toolbox = rig.get("arm");
                    // Replaced since the snapshot: the next one is there already.
                    let Some(_call) = rig.drains.engine.lease("arm", toolbox.generation) else {
                        continue;
                    };
                    assert!(["1", "2"].contains(&&*rig.version_of(&toolbox).await));
                    runs += 1;
                }
                runs
            })
        })
        .collect();
    for round in 0..30 {
        let made = rig.shop.path().join(".new");
        std::fs::write(&made, &versions[round % 2]).unwrap();
        std::fs::rename(&made, rig.shop.path().join("arm.so")).unwrap();
        check(&rig.reload().await, json!({"replaced": ["arm"]}));
        assert_eq!(rig.version("arm").await, ["1", "2"][round % 2]);
    }
    stop.cancel();
    for client in clients {
        assert!(within(client).await.unwrap() > 0);
    }
    assert!(
        within(rig.manager.shutdown(DEADLINE)).await,
        "every copy closes in the end"
    );
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

/// In whatever order they are asked for, and whatever the toolbox is doing: a gentler halt would undo what a backend does in
/// an emergency.
#[tokio::test]
#[allow(clippy::print_stderr, reason = "the figures")]
async fn no_gentle_halt_comes_after_an_emergency_halt_until_the_resume() {
    const ROUNDS: u64 = 10_000;
    let shop = Workshop::new();
    let (toolbox, _) = shop.open("notes_halts").await;
    for round in 1..=ROUNDS {
        let begun = toolbox.start(RunId(round), action("slow", round), None);
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
        drop(begun);
        // Behind the start, so that what is repeated after it has been.
        within(toolbox.may_close()).await.unwrap();
        within(toolbox.resume()).await.unwrap();
    }
    let Ended::Reported(Completion::Output(seen)) =
        within(toolbox.start(RunId(ROUNDS + 1), action("go", ROUNDS + 1), None)).await
    else {
        panic!("it runs after the resume")
    };
    assert_eq!(
        (&seen["after"], &seen["undone"]),
        (&json!(0), &json!(0)),
        "{seen}"
    );
    eprintln!("{ROUNDS} races, {}: {seen}", crate::ISOLATION.as_str());
    // The other order works all the same.
    assert!(seen["gentle"].as_u64().unwrap() > 0, "{seen}");
    assert!(seen["emergencies"].as_u64().unwrap() >= ROUNDS, "{seen}");
}

/// What a gentle halt undoes that had been inside the toolbox for too long to be waited for.
#[tokio::test]
async fn an_emergency_halt_is_repeated_after_a_gentle_one_that_it_overtook() {
    let shop = Workshop::new();
    let (toolbox, seen) = shop
        .open_with("notes_halts", &[("GENTLE_US", "150000")], "{}")
        .await;
    let gentle = toolbox.halt(all(false, 1));
    seen.wait_for("halting", 1).await;
    let emergency = toolbox.halt(all(true, 2));
    within(emergency).await.unwrap();
    within(gentle).await.unwrap();
    within(toolbox.resume()).await.unwrap();
    let seen = within(toolbox.start(RunId(1), action("go", 2), None)).await;
    let Ended::Reported(Completion::Output(seen)) = seen else {
        panic!("it runs after the resume: {seen:?}")
    };
    let halts = ["gentle", "after", "emergencies", "undone"].map(|key| seen[key].as_u64());
    assert_eq!(halts, [1, 1, 2, 0].map(Some), "{seen}");
}

/// Nothing that is asked on one lane holds up the other.
#[tokio::test]
async fn a_stop_gets_through_while_plan_start_and_conclude_hang() {
    let (args, report) = (Object::new(), completed());
    for hangs in ["plan", "start", "conclude"] {
        let shop = Workshop::new();
        let (toolbox, seen) = shop.open("hangs_until_resumed").await;
        let hanging = match hangs {
            "plan" => toolbox.plan("move", &args).map(|plan| plan == Ok(None)).boxed(),
            "start" => start(&toolbox, 1, "go")
                .map(|ended| matches!(ended, Ended::Reported(Completion::Output(_))))
                .boxed(),
            _ => {
                let conclusion = toolbox.conclude("move", &args, &report);
                conclusion.map(|conclusion| conclusion == Ok(None)).boxed()
            }
        };
        seen.wait_for("hanging", 1).await;
        let behind = start(&toolbox, 2, "go");
        toolbox.cancel(RunId(2));
        assert_eq!(within(behind).await, Ended::Cancelled, "{hangs}");
        within(toolbox.halt(all(true, 1))).await.unwrap();
        seen.wait_for("halted_emergency", 1).await;
        within(toolbox.resume()).await.unwrap();
        assert!(within(hanging).await, "{hangs} came to nothing");
    }
}
