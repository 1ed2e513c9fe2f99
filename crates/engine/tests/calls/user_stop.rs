//! The user says "stop", or the bus is away: calls end and motion is halted, without a latch.

use std::time::Duration;

use ovos_toolbox_wire::{CallOutcome, Effect};
use ovos_tools_engine::{CallEnd, CallRequest, Cause, Phase, Refusal};

use crate::memory_toolbox::Event;
use crate::rig::{Call, Rig};
use crate::script::{Script, actions};

fn rig() -> Rig {
    let rig = Rig::new();
    for (tool, subsystem) in [
        ("left", "left"),
        ("right", "right"),
        ("base", "base"),
        ("look", ""),
    ] {
        rig.toolbox.tool(tool, actions(&[&format!("{tool} {subsystem}")]));
    }
    rig
}

async fn runs(rig: &Rig, tool: &str, effect: Effect, session: Option<&str>) -> Call {
    let session_id = session.map(str::to_owned);
    let call = rig.spawn(CallRequest {
        effect,
        session_id,
        ..rig.request(tool)
    });
    rig.toolbox.until_started(tool).await;
    call
}

async fn cause(call: Call) -> Option<Cause> {
    match call.end().await {
        CallEnd::Ran { cause, .. } => cause,
        CallEnd::Refused(refusal) => panic!("{refusal}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_stop_ends_the_calls_of_its_session_only() {
    let rig = rig();
    let mine = runs(&rig, "left", Effect::Motion, Some("kitchen")).await;
    let other = runs(&rig, "right", Effect::Motion, Some("garage")).await;
    let of_no_session = runs(&rig, "base", Effect::Motion, None).await;
    let reading = runs(&rig, "look", Effect::Read, Some("kitchen")).await;
    assert_eq!(rig.engine.user_stop(Some("kitchen")), 2);
    assert_eq!(cause(mine).await, Some(Cause::UserStop));
    assert_eq!(cause(reading).await, Some(Cause::UserStop));
    assert_eq!((cause(other).await, cause(of_no_session).await), (None, None));
    assert!(
        rig.toolbox
            .halted()
            .iter()
            .all(|halt| *halt == (vec!["left".to_owned()], false))
    );
    assert!(!rig.toolbox.halted().is_empty());
    assert!(rig.engine.latched().is_empty());
    assert_eq!(
        rig.motion("left").report().await.outcome,
        CallOutcome::Completed,
        "nothing is latched"
    );
}

#[tokio::test(start_paused = true)]
async fn a_user_stop_without_a_session_ends_all_calls_also_those_that_wait() {
    let rig = rig();
    let first = runs(&rig, "left", Effect::Motion, Some("kitchen")).await;
    let second = runs(&rig, "right", Effect::Motion, None).await;
    let waits = rig.motion("left");
    rig.phase(&waits, Phase::Queued).await;
    assert_eq!(rig.engine.user_stop(None), 3);
    assert_eq!(waits.refusal().await, Refusal::Ended(Cause::UserStop));
    for call in [first, second] {
        assert_eq!(call.report().await.outcome, CallOutcome::Cancelled);
    }
    assert_eq!(rig.engine.user_stop(None), 0);
}

#[tokio::test(start_paused = true)]
async fn losing_the_bus_ends_only_motion() {
    let rig = rig();
    let limit = Duration::from_secs(1);
    let moves = runs(&rig, "left", Effect::Motion, None).await;
    let writes = runs(&rig, "right", Effect::Write, None).await;
    let reads = runs(&rig, "look", Effect::Read, None).await;
    let lands = runs(&rig, "base", Effect::Safe, None).await;
    assert_eq!(rig.engine.bus_lost(limit), 1);
    assert_eq!(cause(moves).await, Some(Cause::BusLost { limit }));
    for call in [writes, reads, lands] {
        assert_eq!(cause(call).await, None);
    }
    assert_eq!(rig.toolbox.halted()[0], (vec!["left".to_owned()], false));
    assert!(rig.engine.latched().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_every_call_and_halts_motion() {
    let rig = rig();
    rig.toolbox.script("base", Script::takes(60_000));
    let moves = runs(&rig, "left", Effect::Motion, None).await;
    let lands = runs(&rig, "base", Effect::Safe, None).await;
    rig.engine.shut_down();
    assert_eq!(cause(moves).await, Some(Cause::Shutdown));
    assert_eq!(cause(lands).await, Some(Cause::Shutdown));
    let halt = Event::Halted {
        subsystems: vec!["left".into()],
        emergency: false,
    };
    assert!(rig.toolbox.log().contains(&halt));
    assert_eq!(rig.engine.calls_in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_motion_requested_before_the_stop_does_not_start_after_it() {
    type Stop = fn(&Rig);
    let limit = Duration::from_secs(1);
    let stops: [(&str, Stop, Cause); 3] = [
        (
            "everybody's",
            |rig| _ = rig.engine.user_stop(None),
            Cause::UserStop,
        ),
        (
            "its session's",
            |rig| _ = rig.engine.user_stop(Some("kitchen")),
            Cause::UserStop,
        ),
        (
            "bus loss",
            |rig| _ = rig.engine.bus_lost(Duration::from_secs(1)),
            Cause::BusLost { limit },
        ),
    ];
    for (name, stop, cause) in stops {
        let rig = rig();
        let session_id = Some("kitchen".to_owned());
        let overtaken = CallRequest {
            session_id: session_id.clone(),
            ..rig.request("left")
        };
        let others = CallRequest {
            session_id: Some("garage".to_owned()),
            ..rig.request("right")
        };
        let safe = CallRequest {
            effect: Effect::Safe,
            session_id: session_id.clone(),
            ..rig.request("base")
        };
        tokio::time::advance(Duration::from_millis(1)).await;
        stop(&rig);
        tokio::time::advance(Duration::from_millis(1)).await;
        let later = CallRequest {
            session_id,
            ..rig.request("left")
        };
        assert_eq!(
            rig.spawn(overtaken).refusal().await,
            Refusal::Ended(cause),
            "{name}"
        );
        if name == "its session's" {
            rig.spawn(others).report().await;
        }
        rig.spawn(safe).report().await;
        rig.spawn(later).report().await;
        assert_eq!(
            rig.toolbox.started().iter().filter(|a| *a == "left").count(),
            1,
            "{name}"
        );
    }
}
