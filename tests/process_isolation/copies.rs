//! The copies of a toolbox: what reaches which copy while one replaces the other, and how they end.
use std::sync::Arc;

use engine::{RunId, RunResult, StopTarget, Toolbox};
use host::{Limits, ToolboxSettings};
use serde_json::json;

use crate::reload::check;
use crate::support::fixture::{DEADLINE, action, opening, start, within};
use crate::support::rig::Rig;

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
    assert_eq!(within(held).await, RunResult::Cancelled);
    leg.toolbox.cancel(RunId(501));
    assert_eq!(within(left_alone).await, RunResult::Cancelled);
    assert_eq!(rig.get("leg").generation, 1);
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
        matches!(newer, RunResult::Reported(_)),
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
        let made = rig.fixtures.path().join(".new");
        std::fs::write(&made, &versions[round % 2]).unwrap();
        std::fs::rename(&made, rig.fixtures.path().join("arm.so")).unwrap();
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
async fn tools_are_asked_again_when_they_changed() {
    let rig = Rig::new();
    rig.fixtures.build("tools_change", &[]);
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
async fn a_change_of_the_tools_is_told_after_the_list_that_has_it() {
    let rig = Rig::new();
    rig.fixtures.build("tools_change", &[("EARLY", "1")]);
    rig.reload().await;
    rig.seen.wait_for("tools_changed", 1).await;
    assert_eq!(rig.get("hostile").tools.tools.len(), 2);
}

#[tokio::test]
async fn a_toolbox_that_does_not_list_its_tools_delays_no_other() {
    let rig = Rig::new();
    let limits = Limits {
        open: 10 * DEADLINE,
        ..opening("{}").limits
    };
    let config = ToolboxSettings {
        limits,
        ..ToolboxSettings::default()
    };
    rig.configs.lock().unwrap().insert("stuck".to_owned(), config);
    let defines = [("ID", "\"stuck\""), ("HANGS", "1")];
    rig.fixtures.build_as("stuck", "tools_change", &defines);
    rig.fixtures.build("tools_change", &[]);
    rig.reload().await;
    rig.version("stuck").await;
    rig.version("hostile").await;
    rig.seen.wait_for("tools_changed", 1).await;
    assert_eq!(rig.get("hostile").tools.tools.len(), 2);
}

#[tokio::test]
async fn a_tool_that_comes_later_moves_nothing_that_cannot_be_halted() {
    let rig = Rig::new();
    rig.fixtures
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
    assert_eq!(within(waiting).await, RunResult::Cancelled);
    assert_eq!(rig.seen.count("closed"), 2);
    // One more when the halt found the start still in progress.
    assert!(rig.seen.count("halted") >= 2);
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_toolbox_that_does_not_open() {
    let rig = Rig::new();
    rig.add("leg", "1", &[]);
    rig.reload().await;
    rig.fixtures.build_as("arm", "open_hangs", &[("ID", "\"arm\"")]);
    let shutdown = async {
        rig.seen.wait_for("opening", 1).await;
        rig.manager.shutdown(DEADLINE / 2).await
    };
    let (report, closed) = tokio::join!(rig.reload(), within(shutdown));
    assert!(closed, "{report:?}");
    assert!(
        report.broken[0].reason.contains("the service is shutting down"),
        "{report:?}"
    );
    assert_eq!((rig.seen.count("halted"), rig.seen.count("closed")), (1, 1));
}
