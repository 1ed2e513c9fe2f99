//! Timeouts and cancellation: the requests to the toolbox, the time that the engine waits, and the report.

use std::time::Duration;

use ovos_toolbox_wire::Outcome::{Abandoned, Cancelled, Completed, TimedOut};
use ovos_toolbox_wire::{Action, CallOutcome, Effect, Outcome};
use ovos_tools_engine::{CallEnd, CallLookup, CallRequest, Cause, Limits, Phase, Refusal};

use crate::memory_toolbox::Event;
use crate::rig::{Rig, kind, line, outcomes, some_progress};
use crate::script::{OnCancel, Script, Tool, action, actions};

fn by_a_test() -> Cause {
    Cause::Cancelled { by: "a test".into() }
}

/// The action `long` uses the left arm, with the given effect.
fn rig(effect: Effect, on_cancel: OnCancel) -> Rig {
    let rig = Rig::new();
    let long = Action {
        effect: Some(effect),
        ..action("long left")
    };
    rig.toolbox.tool("t", vec![long, action("later < long")]);
    rig.toolbox.script("long", Script::hangs().on_cancel(on_cancel));
    rig
}

fn halts_left(rig: &Rig) -> bool {
    rig.toolbox
        .halted()
        .iter()
        .any(|(subsystems, emergency)| subsystems == &["left"] && !emergency)
}

#[tokio::test(start_paused = true)]
async fn an_ended_call_is_cancelled_and_its_motion_halted_at_once() {
    for effect in [Effect::Motion, Effect::Write, Effect::Read] {
        let rig = rig(effect, OnCancel::Ends(Duration::from_millis(200)));
        let call = rig.motion("t");
        rig.toolbox.until_started("long").await;
        let start = tokio::time::Instant::now();
        rig.end(&call, by_a_test());
        let cancelled = Event::Cancelled {
            action: "long".into(),
        };
        rig.toolbox
            .until("the cancel", |log| log.contains(&cancelled))
            .await;
        assert_eq!(start.elapsed(), Duration::ZERO, "cancelled at once");
        assert_eq!(
            halts_left(&rig),
            effect == Effect::Motion,
            "{effect}: halted at once if it moves"
        );
        let report = call.report().await;
        assert_eq!(
            outcomes(&report),
            [("long", Cancelled), ("later", Cancelled)].into()
        );
        assert_eq!(report.outcome, CallOutcome::Cancelled);
        let error = line(&report, "long").error.clone().unwrap();
        assert_eq!(error.to_string(), "CancelledError: cancelled by a test");
        assert_eq!(
            start.elapsed(),
            Duration::from_millis(200),
            "and ends when the toolbox says so"
        );
        assert_eq!(rig.toolbox.started(), ["long"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_takes_too_long_is_cancelled_and_halted() {
    for (effect, moves) in [(Effect::Motion, true), (Effect::Read, false)] {
        let rig = rig(effect, OnCancel::Fails(Duration::from_millis(100)));
        let start = tokio::time::Instant::now();
        let report = rig.motion("t").report().await;
        assert_eq!(start.elapsed(), Duration::from_millis(10_100));
        assert_eq!(
            outcomes(&report),
            [("long", TimedOut), ("later", Outcome::Skipped)].into()
        );
        assert_eq!(report.outcome, CallOutcome::TimedOut);
        let error = line(&report, "long").error.clone().unwrap();
        assert_eq!(
            error.to_string(),
            "TimeoutError: not done within its timeout of 10000 ms"
        );
        assert!(rig.toolbox.cancelled("long"));
        assert_eq!(halts_left(&rig), moves);
    }
}

#[tokio::test(start_paused = true)]
async fn the_nearest_timeout_counts() {
    // The action's timeout, the tool's, and the configured one.
    for (action_ms, tool_ms, expected) in [
        (Some(50), Some(20), 50),
        (None, Some(20), 20),
        (None, None, 10_000),
    ] {
        let rig = Rig::new();
        rig.toolbox.tool(
            "t",
            vec![Action {
                timeout_ms: action_ms,
                ..action("a left")
            }],
        );
        rig.toolbox
            .script("a", Script::hangs().on_cancel(OnCancel::Ends(Duration::ZERO)));
        let action_timeout = tool_ms.map(Duration::from_millis);
        let start = tokio::time::Instant::now();
        rig.spawn(CallRequest {
            action_timeout,
            ..rig.request("t")
        })
        .report()
        .await;
        // The runtime's timers have a resolution of 1 ms.
        assert!(
            start.elapsed().as_millis().abs_diff(expected) <= 1,
            "{:?} for {expected}",
            start.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_ignores_it_is_abandoned_after_the_grace() {
    let (grace, settle) = (Duration::from_millis(500), Duration::from_secs(3));
    for (effect, patience) in [(Effect::Motion, settle), (Effect::Read, grace)] {
        for ends in ["cancelled", "by its timeout"] {
            let rig = rig(effect, OnCancel::Ignores);
            let start = tokio::time::Instant::now();
            let call = rig.motion("t");
            rig.toolbox.until_started("long").await;
            let mut waited = patience;
            if ends == "cancelled" {
                rig.end(&call, by_a_test());
            } else {
                waited += Duration::from_secs(10);
            }
            let report = call.report().await;
            assert_eq!(line(&report, "long").outcome, Abandoned, "{effect}, {ends}");
            assert_eq!(start.elapsed(), waited, "{effect}, {ends}");
            assert!(rig.toolbox.log().contains(&Event::GivenUp {
                action: "long".into()
            }));
            // The call has released its subsystems.
            rig.toolbox.script("long", Script::takes(1));
            assert_eq!(rig.motion("t").report().await.outcome, CallOutcome::Completed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_completes_despite_its_cancel_is_not_cancelled() {
    let rig = rig(Effect::Motion, OnCancel::Completes(Duration::from_millis(10)));
    let call = rig.motion("t");
    rig.toolbox.until_started("long").await;
    rig.end(&call, by_a_test());
    let report = call.report().await;
    assert_eq!(
        outcomes(&report),
        [("long", Completed), ("later", Cancelled)].into()
    );
    assert!(line(&report, "long").output.is_some());
    // After its timeout an action counts as `timed_out`, but its output is kept.
    let report = rig.motion("t").report().await;
    assert_eq!(line(&report, "long").outcome, TimedOut);
    assert!(line(&report, "long").output.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_halt_that_is_not_answered_does_not_hold_up_the_call() {
    for answer in [crate::script::Answer::Never, crate::script::Answer::No] {
        let rig = rig(Effect::Motion, OnCancel::Ends(Duration::ZERO));
        rig.toolbox.halts(answer);
        let call = rig.motion("t");
        rig.toolbox.until_started("long").await;
        let start = tokio::time::Instant::now();
        rig.end(&call, by_a_test());
        call.report().await;
        assert!(
            start.elapsed() <= Duration::from_millis(401),
            "{answer:?}: {:?}",
            start.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_subsystems_of_completed_actions_are_halted_too() {
    let rig = Rig::new();
    rig.toolbox
        .tool("t", actions(&["drive base", "grip hand < drive"]));
    rig.toolbox.script("grip", Script::hangs());
    let call = rig.motion("t");
    rig.toolbox.until_started("grip").await;
    rig.end(&call, by_a_test());
    call.report().await;
    let last = rig.toolbox.halted().pop().unwrap();
    assert_eq!(last, (vec!["base".to_owned(), "hand".to_owned()], false));
}

#[tokio::test(start_paused = true)]
async fn the_callers_timeout_counts_from_receipt() {
    let waits = Duration::from_millis(300);
    let timed = |rig: &Rig| CallRequest {
        timeout: Some(waits),
        ..rig.request("t")
    };

    // The call is running.
    let rig_running = rig(Effect::Motion, OnCancel::Ends(Duration::ZERO));
    let request = timed(&rig_running);
    tokio::time::advance(Duration::from_millis(100)).await;
    let start = tokio::time::Instant::now();
    let report = rig_running.spawn(request).report().await;
    assert_eq!(start.elapsed().as_millis(), 200);
    assert_eq!(report.outcome, CallOutcome::TimedOut);
    assert_eq!(line(&report, "long").outcome, TimedOut);
    assert!(halts_left(&rig_running));

    // The call waits for its subsystems.
    let rig_waiting = rig(Effect::Motion, OnCancel::Ends(Duration::ZERO));
    let holds = rig_waiting.motion("t");
    rig_waiting.toolbox.until_started("long").await;
    let start = tokio::time::Instant::now();
    let refusal = rig_waiting.spawn(timed(&rig_waiting)).refusal().await;
    assert_eq!(refusal, Refusal::Ended(Cause::TimedOut { limit: waits }));
    assert_eq!(start.elapsed(), waits);
    rig_waiting.end(&holds, by_a_test());
    holds.report().await;

    // The toolbox plans the call.
    let rig_planning = Rig::new();
    let slow = Tool {
        plan_takes: Duration::from_secs(60),
        ..Tool::default()
    };
    rig_planning.toolbox.tool_with("t", slow);
    let start = tokio::time::Instant::now();
    let refusal = rig_planning.spawn(timed(&rig_planning)).refusal().await;
    assert_eq!(refusal, Refusal::Ended(Cause::TimedOut { limit: waits }));
    assert_eq!(start.elapsed(), waits);

    // The timeout passed before the engine got the call: nothing is started.
    let rig_late = rig(Effect::Motion, OnCancel::Ends(Duration::ZERO));
    let request = timed(&rig_late);
    tokio::time::advance(Duration::from_secs(1)).await;
    let refusal = rig_late.spawn(request).refusal().await;
    assert_eq!(refusal, Refusal::Ended(Cause::TimedOut { limit: waits }));
    assert!(rig_late.toolbox.started().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_beyond_the_end_of_time_is_none() {
    let rig = Rig::new();
    let report = rig
        .spawn(CallRequest {
            timeout: Some(Duration::MAX),
            ..rig.request("t")
        })
        .report()
        .await;
    assert_eq!(report.outcome, CallOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_over_keeps_the_cause_it_ended_with() {
    let rig = Rig::new();
    let slow = Tool {
        conclude_takes: Duration::from_millis(900),
        ..Tool::default()
    };
    rig.toolbox.tool_with("t", slow);
    let request = CallRequest {
        timeout: Some(Duration::from_millis(500)),
        ..rig.request("t")
    };
    match rig.spawn(request).end().await {
        // The action took 100 ms; the timeout passed while the toolbox concluded.
        CallEnd::Ran { report, cause, .. } => {
            assert_eq!((report.outcome, cause), (CallOutcome::Completed, None))
        }
        CallEnd::Refused(refusal) => panic!("{refusal}"),
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_once_the_call_was_ended_also_inside_a_wave() {
    let rig = Rig::new();
    let many: Vec<_> = (0..500).map(|n| format!("a{n} s{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    rig.toolbox.tool("t", actions(&many));
    let engine = rig.engine.clone();
    rig.toolbox.hook(move |event| {
        if matches!(event, Event::Started { action, .. } if action == "a100") {
            engine.user_stop(None);
        }
    });
    let report = rig.motion("t").report().await;
    assert_eq!(
        rig.toolbox.started().len(),
        101,
        "what was not started yet stays so"
    );
    assert!(report.actions.iter().all(|line| line.outcome == Cancelled));
    assert_eq!(report.actions.len(), 500);
}

#[tokio::test(start_paused = true)]
async fn an_ended_call_is_distinguished_from_an_unknown_one() {
    let rig = Rig::new();
    let call = rig.motion("t");
    let call_id = call.call_id.clone();
    rig.phase(&call, Phase::Running).await;
    let CallLookup::InFlight(control) = rig.engine.find(&call_id) else {
        panic!("it runs");
    };
    assert_eq!(control.subsystems(), ["all"]);
    call.report().await;
    assert!(matches!(rig.engine.find(&call_id), CallLookup::Ended));
    assert!(matches!(rig.engine.find("call-0"), CallLookup::Unknown));
    control.end(by_a_test());
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_in_order_and_never_after_the_end() {
    let rig = rig(Effect::Motion, OnCancel::Ignores);
    let (request, mut steps) = rig.with_queue(rig.request("t"));
    let call = rig.spawn(request);
    rig.toolbox.until_started("long").await;
    let progress = rig.toolbox.sink("long");
    progress(some_progress());
    rig.end(&call, by_a_test());
    call.report().await;
    // The abandoned toolbox still reports progress.
    progress(some_progress());
    let mut facts = Vec::new();
    while let Ok(step) = steps.try_recv() {
        facts.push((step.seq, kind(&step.fact)));
    }
    let expected = ["wave", "action_started", "update", "action_ended"];
    let expected: Vec<_> = (1..).zip(expected.map(str::to_owned)).collect();
    assert_eq!(facts, expected);
}

#[tokio::test(start_paused = true)]
async fn limits_are_those_of_the_toolbox() {
    let limits = Limits {
        settle: Duration::from_secs(7),
        ..Limits::default()
    };
    let rig = Rig::with(limits);
    rig.toolbox.tool("t", actions(&["long left"]));
    rig.toolbox
        .script("long", Script::hangs().on_cancel(OnCancel::Ignores));
    let call = rig.motion("t");
    rig.toolbox.until_started("long").await;
    let start = tokio::time::Instant::now();
    rig.end(&call, by_a_test());
    call.report().await;
    assert_eq!(start.elapsed(), limits.settle);
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_never_plans_keeps_no_call_waiting_for_ever() {
    let rig = Rig::new();
    let hangs = Tool {
        plan_takes: Duration::from_secs(3600),
        ..Tool::default()
    };
    rig.toolbox.tool_with("t", hangs);
    let start = tokio::time::Instant::now();
    let calls: Vec<_> = (0..200).map(|_| rig.motion("t")).collect();
    for call in calls {
        call.refusal().await;
    }
    let limits = Limits::default();
    assert!(
        start.elapsed() <= limits.max_wait + limits.plan,
        "{:?}",
        start.elapsed()
    );
}
