//! Reservation: a call holds its subsystems from the first wave to the last, and waiting calls are served in order.

use std::time::Duration;

use ovos_toolbox_wire::{CallOutcome, Effect};
use ovos_tools_engine::{CallRequest, Cause, Claim, Limits, Phase, Refusal, Request, Reservations};

use crate::memory_toolbox::Event;
use crate::rig::{Call, Rig};
use crate::script::{Script, actions};

/// A rig with the tools `left`, `right`, `both`, `base` and `everything`: each has two waves on the subsystems in its
/// name.
fn rig(limits: Limits) -> Rig {
    let rig = Rig::with(limits);
    for (tool, subsystems) in [
        ("left", "left"),
        ("right", "right"),
        ("both", "left,right"),
        ("base", "base"),
        ("everything", "all"),
    ] {
        let (first, second) = (
            format!("{tool}1 {subsystems}"),
            format!("{tool}2 {subsystems} < {tool}1"),
        );
        rig.toolbox.tool(tool, actions(&[&first, &second]));
    }
    rig
}

/// A call that runs on `left`, one of `both` that waits for it, and one of `right` that waits behind that.
async fn queue(rig: &Rig) -> [Call; 3] {
    let holds = rig.motion("left");
    rig.toolbox.until_started("left1").await;
    let waits = rig.motion("both");
    rig.phase(&waits, Phase::Queued).await;
    let behind = rig.motion("right");
    rig.phase(&behind, Phase::Queued).await;
    [holds, waits, behind]
}

#[tokio::test(start_paused = true)]
async fn two_calls_never_interleave_on_one_arm() {
    let rig = rig(Limits::default());
    let calls: Vec<_> = ["left", "both", "everything", "left"]
        .map(|tool| rig.motion(tool))
        .into();
    for call in calls {
        assert_eq!(call.report().await.outcome, CallOutcome::Completed);
    }
    let started = rig.toolbox.started();
    assert_eq!(
        started,
        [
            "left1",
            "left2",
            "both1",
            "both2",
            "everything1",
            "everything2",
            "left1",
            "left2"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_is_overtaken_only_by_calls_without_a_conflict_ahead() {
    let rig = rig(Limits::default());
    let calls: Vec<_> = ["left", "both", "right", "base"]
        .map(|tool| rig.motion(tool))
        .into();
    for call in calls {
        call.report().await;
    }
    let started = rig.toolbox.started();
    let place = |action: &str| started.iter().position(|a| a == action).unwrap();
    assert!(
        place("base1") < place("left2"),
        "base shares nothing and goes at once: {started:?}"
    );
    assert!(
        place("both2") < place("right1"),
        "right was free, but belongs to the call ahead: {started:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn reading_reserves_nothing_and_waits_for_nothing() {
    let rig = rig(Limits::default());
    rig.toolbox.script("everything1", Script::hangs());
    let moving = rig.motion("everything");
    rig.toolbox.until_started("everything1").await;
    let start = tokio::time::Instant::now();
    rig.effect("left", Effect::Read).report().await;
    assert_eq!(start.elapsed(), Duration::from_millis(200));
    assert!(!moving.task.is_finished());
    // A read call does not delay a motion call either.
    rig.toolbox.script("right1", Script::takes(5000));
    let reading = rig.effect("right", Effect::Read);
    rig.toolbox.until_started("right1").await;
    rig.end(&moving, Cause::UserStop);
    moving.report().await;
    rig.motion("right").report().await;
    reading.report().await;
}

#[tokio::test(start_paused = true)]
async fn the_line_is_bounded_in_length() {
    let rig = rig(Limits {
        max_waiting: 1,
        ..Limits::default()
    });
    let holds = rig.motion("left");
    rig.toolbox.until_started("left1").await;
    let waits = rig.motion("both");
    rig.phase(&waits, Phase::Queued).await;
    let refusal = rig.motion("left").refusal().await;
    assert_eq!(
        refusal.to_string(),
        "the queue for left is full (1 waiting); in the way: `left` (call call-1), `both` (call call-2)"
    );
    rig.motion("base").report().await;
    holds.report().await;
    waits.report().await;
    rig.motion("left").report().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_bound_for_the_line_applies_from_the_next_generation_on() {
    let rig = rig(Limits {
        max_waiting: 0,
        ..Limits::default()
    });
    let toolbox = std::sync::Arc::new(crate::memory_toolbox::Shared(rig.toolbox.clone()));
    rig.engine.attach(
        "robot",
        2,
        toolbox,
        Limits {
            max_waiting: 1,
            ..Limits::default()
        },
    );
    let holds = rig.motion("left");
    rig.toolbox.until_started("left1").await;
    rig.motion("left").report().await;
    holds.report().await;
}

#[tokio::test(start_paused = true)]
async fn the_line_is_bounded_in_time() {
    let rig = rig(Limits {
        max_wait: Duration::from_secs(2),
        ..Limits::default()
    });
    rig.toolbox.script("left1", Script::takes(5000));
    let holds = rig.motion("left");
    rig.toolbox.until_started("left1").await;
    let start = tokio::time::Instant::now();
    let waits = rig.motion("both");
    rig.phase(&waits, Phase::Queued).await;
    // It waits behind a call that gives up, and runs as soon as that one does.
    let behind = rig.motion("right");
    let refusal = waits.refusal().await;
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert_eq!(
        refusal.to_string(),
        "left, right did not become free within 2000 ms; held by `left` (call call-1)"
    );
    behind.report().await;
    assert_eq!(holds.report().await.outcome, CallOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_that_is_ended_never_starts_and_lets_the_next_one_through() {
    let rig = rig(Limits::default());
    rig.toolbox.script("left1", Script::takes(5000));
    let [holds, waits, behind] = queue(&rig).await;
    let cause = Cause::Cancelled { by: "a test".into() };
    rig.end(&waits, cause.clone());
    assert_eq!(waits.refusal().await, Refusal::Ended(cause));
    behind.report().await;
    holds.report().await;
    assert!(!rig.toolbox.started().contains(&"both1".to_owned()));
    assert!(
        rig.toolbox.halted().is_empty(),
        "what has not moved is not halted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_gives_back_its_place_and_what_it_held() {
    let rig = rig(Limits::default());
    rig.toolbox.script("left1", Script::hangs());
    let [holds, waits, behind] = queue(&rig).await;
    waits.task.abort();
    behind.report().await;
    holds.task.abort();
    assert!(holds.task.await.unwrap_err().is_cancelled());
    rig.toolbox.script("left1", Script::takes(1));
    rig.motion("left").report().await;
    assert_eq!(rig.engine.calls_in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_moves_is_cancelled_and_halted_first() {
    let rig = rig(Limits::default());
    rig.toolbox.script("left1", Script::hangs());
    let holds = rig.motion("left");
    rig.toolbox.until_started("left1").await;
    let behind = rig.motion("both");
    rig.phase(&behind, Phase::Queued).await;
    holds.task.abort();
    behind.report().await;
    let halt = Event::Halted {
        subsystems: vec!["left".into()],
        emergency: false,
    };
    let next = Event::Started {
        call: "call-2".into(),
        action: "both1".into(),
    };
    assert!(
        rig.toolbox.place(&Event::Cancelled {
            action: "left1".into()
        }) < rig.toolbox.place(&halt)
    );
    assert!(rig.toolbox.place(&halt) < rig.toolbox.place(&next));
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_are_bounded_and_their_ids_unique() {
    let rig = Rig::bounded(2, Limits::default());
    rig.toolbox.script("slow", Script::takes(5000));
    let first = rig.effect("slow", Effect::Read);
    rig.toolbox.until_started("slow").await;
    let twin = CallRequest {
        call_id: first.call_id.clone(),
        ..rig.request("slow")
    };
    let refusal = rig.spawn(twin).refusal().await;
    assert_eq!(
        refusal.to_string(),
        "call_id `call-1` is already in flight; use another one, or none"
    );
    let second = rig.motion("slow");
    rig.phase(&second, Phase::Running).await;
    let refusal = rig.effect("ping", Effect::Read).refusal().await;
    let holders = vec!["2 of `robot`".to_owned()];
    assert_eq!(refusal, Refusal::TooManyCalls { limit: 2, holders });
    // A safe call is admitted at the limit.
    rig.effect("brake", Effect::Safe).report().await;
    first.report().await;
    second.report().await;
    rig.effect("ping", Effect::Read).report().await;
}

/// Each row: the limit, and toolboxes that one after the other take as many places as they get.
#[tokio::test]
async fn no_toolbox_takes_the_last_quarter_of_the_calls_from_the_others() {
    for (limit, toolboxes) in [
        (8, vec![("hung", 6), ("robot", 2), ("late", 0)]),
        (100, vec![("hung", 75), ("other", 19), ("robot", 5), ("late", 1)]),
        (4, vec![("hung", 3), ("robot", 1)]),
        (1, vec![("hung", 1), ("robot", 0)]),
    ] {
        let rig = Rig::bounded(limit, Limits::default());
        let of = |toolbox_id: &str, effect| CallRequest {
            toolbox_id: toolbox_id.to_owned(),
            effect,
            ..rig.request("slow")
        };
        let mut places = Vec::new();
        for (toolbox_id, expected) in &toolboxes {
            let refusal = loop {
                match rig.engine.enter(&of(toolbox_id, Effect::Motion)) {
                    Ok(place) => places.push((*toolbox_id, place)),
                    Err(refusal) => break refusal,
                }
            };
            let held = places.iter().filter(|(id, _)| id == toolbox_id).count();
            assert_eq!(held, *expected, "{toolbox_id} of {limit}");
            // The toolbox that holds the calls is named.
            assert!(
                refusal.to_string().contains("`hung`") || *toolbox_id != "hung",
                "{refusal}"
            );
            let safe = rig.engine.enter(&of(toolbox_id, Effect::Safe));
            assert!(safe.is_ok(), "a safe call is never turned away");
        }
        // What ends makes room.
        places.retain(|(toolbox_id, _)| *toolbox_id != "hung");
        assert!(rig.engine.enter(&of("late", Effect::Read)).is_ok());
    }
}

#[test]
fn claims_of_many_subsystems_are_compared_fast() {
    let names = |unit: &str| (0..100_000).map(|n| format!("{unit}/{n:06}")).collect::<Claim>();
    let (mine, others, all) = (names("a"), names("b"), Claim::from_iter(["b/all", "c/all"]));
    let start = std::time::Instant::now();
    assert!(
        !mine.conflicts(&others) && mine.conflicts(&mine) && !mine.conflicts(&all) && all.conflicts(&others)
    );
    // 10^10 comparisons of names would take minutes.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_newer_safe_call_goes_behind_an_older_one_and_before_all_others() {
    let claim = |names: &str| names.split_whitespace().collect::<Claim>();
    let mut table = Reservations::new(8);
    assert_eq!(table.request(1, claim("flight")), Request::Granted);
    assert_eq!(table.request(2, claim("flight")), Request::Queued(0));
    assert_eq!(table.request_first(3, claim("flight")), Request::Queued(0));
    assert_eq!(table.request_first(4, claim("flight")), Request::Queued(1));
    assert_eq!(table.request_first(5, claim("camera")), Request::Granted);
    assert_eq!(table.waiting(), 3);
    assert_eq!(table.release(1), [3]);
    assert_eq!(table.release(3), [4]);
    assert_eq!(table.release(4), [2]);
}
