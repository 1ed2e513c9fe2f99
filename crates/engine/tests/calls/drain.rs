//! Generations: which ones take calls, and what a reload waits for.

use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_wire::{CallOutcome, Effect};
use ovos_tools_engine::{CallEnd, CallLookup, CallRequest, Cause, Limits, Phase, Refusal, StopTarget};

use crate::memory_toolbox::{MemoryToolbox, Shared};
use crate::rig::{GENERATION, Rig};
use crate::script::{OnCancel, Script, actions};

const DRAIN: Duration = Duration::from_secs(10);

fn rig(script: Script) -> Rig {
    let rig = Rig::new();
    rig.toolbox.tool("t", actions(&["long left"]));
    rig.toolbox.script(
        "long",
        Script {
            takes: script.takes,
            ..script
        },
    );
    rig
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_calls_under_way_and_lets_no_new_one_in() {
    let rig = rig(Script::takes(5000));
    let call = rig.motion("t");
    rig.toolbox.until_started("long").await;
    let start = tokio::time::Instant::now();
    let engine = rig.engine.clone();
    let drain = tokio::spawn(async move { engine.drain("robot", GENERATION, DRAIN).await });
    tokio::task::yield_now().await;
    assert!(rig.engine.lease("robot", GENERATION).is_none());
    assert_eq!(call.report().await.outcome, CallOutcome::Completed);
    drain.await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert!(rig.toolbox.halted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_and_halts_calls_that_do_not_end_by_themselves() {
    let rig = rig(Script::hangs());
    let call = rig.motion("t");
    rig.toolbox.until_started("long").await;
    let waits = rig.motion("t");
    rig.phase(&waits, Phase::Queued).await;
    let start = tokio::time::Instant::now();
    rig.engine
        .drain("robot", GENERATION, Duration::from_secs(3))
        .await;
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let cause = Cause::Reloaded {
        toolbox_id: "robot".into(),
    };
    assert_eq!(waits.refusal().await, Refusal::Ended(cause.clone()));
    let CallEnd::Ran {
        report, cause: found, ..
    } = call.end().await
    else {
        panic!("it ran");
    };
    assert_eq!((report.outcome, found), (CallOutcome::Cancelled, Some(cause)));
    assert_eq!(rig.toolbox.halted()[0], (vec!["left".to_owned()], false));
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_even_if_nothing_answers() {
    let rig = rig(Script::hangs().on_cancel(OnCancel::Ignores));
    rig.toolbox.halts(crate::script::Answer::Never);
    let call = rig.motion("t");
    rig.toolbox.until_started("long").await;
    let start = tokio::time::Instant::now();
    rig.engine.drain("robot", GENERATION, Duration::ZERO).await;
    let limits = Limits::default();
    assert_eq!(
        start.elapsed().as_millis(),
        (limits.settle + 2 * limits.halt).as_millis()
    );
    call.report().await;
    // A lease that is never dropped.
    rig.attach(GENERATION);
    let _lease = rig.lease();
    let start = tokio::time::Instant::now();
    rig.engine
        .drain("robot", GENERATION, Duration::from_secs(1))
        .await;
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn calls_of_another_generation_or_toolbox_do_not_notice() {
    let rig = rig(Script::takes(5000));
    let newer = MemoryToolbox::new();
    newer.tool("t", actions(&["long right"]));
    rig.engine
        .attach("robot", 2, Arc::new(Shared(newer.clone())), Limits::default());
    let old = rig.motion("t");
    rig.toolbox.until_started("long").await;
    let lease = rig.engine.lease("robot", 2).unwrap();
    assert_eq!(lease.generation(), 2);
    newer.script("long", Script::takes(60_000));
    let engine = rig.engine.clone();
    let request = CallRequest {
        generation: 2,
        action_timeout: Some(Duration::from_secs(100)),
        ..rig.request("t")
    };
    let new = tokio::spawn(async move { engine.call(&lease, request).await });
    newer.until_started("long").await;
    rig.engine.drain("robot", GENERATION, Duration::ZERO).await;
    assert_eq!(old.report().await.outcome, CallOutcome::Cancelled);
    let CallEnd::Ran { report, .. } = new.await.unwrap() else {
        panic!("it ran");
    };
    assert_eq!(report.outcome, CallOutcome::Completed);
    assert!(newer.halted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_generations_share_the_subsystems_and_a_stop_reaches_both() {
    let rig = rig(Script::hangs());
    let newer = MemoryToolbox::new();
    newer.tool("t", actions(&["long left"]));
    rig.engine
        .attach("robot", 2, Arc::new(Shared(newer.clone())), Limits::default());
    let old = rig.motion("t");
    rig.toolbox.until_started("long").await;
    let lease = rig.engine.lease("robot", 2).unwrap();
    let (engine, request) = (
        rig.engine.clone(),
        CallRequest {
            generation: 2,
            ..rig.request("t")
        },
    );
    let call_id = request.call_id.clone();
    let task = tokio::spawn(async move { engine.call(&lease, request).await });
    let new = crate::rig::Call { call_id, task };
    rig.phase(&new, Phase::Queued).await;
    rig.engine.stop(&StopTarget::All, "a test").await;
    assert_eq!(old.report().await.outcome, CallOutcome::Stopped);
    assert!(matches!(
        new.refusal().await,
        Refusal::Ended(Cause::EmergencyStop { .. })
    ));
    for toolbox in [&rig.toolbox, &newer] {
        assert_eq!(toolbox.halted(), [(vec!["all".to_owned()], true)]);
    }
    assert!(newer.started().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drained_generation_can_be_taken_back_or_forgotten() {
    let rig = rig(Script::takes(1));
    rig.engine.drain("robot", GENERATION, DRAIN).await;
    assert!(rig.engine.lease("robot", GENERATION).is_none());
    rig.attach(GENERATION);
    assert_eq!(
        rig.effect("t", Effect::Motion).report().await.outcome,
        CallOutcome::Completed
    );
    rig.engine.detach("robot", GENERATION);
    assert!(rig.engine.lease("robot", GENERATION).is_none());
    assert!(rig.engine.lease("unknown", GENERATION).is_none());
    rig.engine.drain("unknown", GENERATION, DRAIN).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_may_outlive_its_generation() {
    let rig = rig(Script::takes(1));
    let lease = rig.lease();
    rig.engine.detach("robot", GENERATION);
    // A generation with the same number, as after a failed removal: the old lease does not count for it.
    rig.attach(GENERATION);
    drop(lease);
    rig.motion("t").report().await;
    rig.engine.drain("robot", GENERATION, Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_new_generation_can_be_ended_like_any_other() {
    type End = fn(&Rig, &str);
    let limit = Duration::from_millis(700);
    let by = || Cause::Cancelled { by: "a test".into() };
    let ends: [(&str, End, Cause); 4] = [
        ("cancel", |rig, id| end(rig, id), by()),
        (
            "user stop",
            |rig, _| _ = rig.engine.user_stop(None),
            Cause::UserStop,
        ),
        ("shutdown", |rig, _| rig.engine.shut_down(), Cause::Shutdown),
        ("timeout", |_, _| {}, Cause::TimedOut { limit }),
    ];
    for (name, end, cause) in ends {
        let rig = rig(Script::takes(1));
        let request = CallRequest {
            generation: 0,
            timeout: (name == "timeout").then_some(limit),
            ..rig.request("t")
        };
        let place = rig.engine.enter(&request).unwrap();
        assert_eq!(rig.engine.calls_in_flight(), 1);
        end(&rig, &request.call_id);
        let start = tokio::time::Instant::now();
        let waited = place.wait_for(std::future::pending::<()>()).await;
        assert_eq!(waited, Err(Refusal::Ended(cause)), "{name}");
        assert!(start.elapsed() <= limit, "{name}");
        drop(place);
        assert_eq!(rig.engine.calls_in_flight(), 0);
    }
    let rig = rig(Script::takes(1));
    let request = rig.request("t");
    let place = rig.engine.enter(&request).unwrap();
    rig.engine.drain("robot", GENERATION, Duration::ZERO).await;
    rig.attach(2);
    let lease = rig.engine.lease("robot", 2).unwrap();
    place.wait_for(async {}).await.unwrap();
    let stopped = rig.engine.stop(&StopTarget::All, "a test");
    let CallEnd::Refused(refusal) = rig.engine.call_at(place, &lease, request, None).await else {
        panic!("it ran");
    };
    assert!(
        matches!(refusal, Refusal::Latched { .. } | Refusal::Ended(_)),
        "{refusal}"
    );
    assert_eq!(rig.toolbox.started(), Vec::<String>::new());
    drop(stopped);
}

fn end(rig: &Rig, call_id: &str) {
    match rig.engine.find(call_id) {
        CallLookup::InFlight(control) => control.end(Cause::Cancelled { by: "a test".into() }),
        other => panic!("{call_id} is {other:?}"),
    }
}
