//! Emergency stop, latch, epoch and resume.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ovos_toolbox_wire::Outcome::Cancelled;
use ovos_toolbox_wire::{CallOutcome, Effect};
use ovos_tools_engine::{
    CallEnd, CallLookup, CallRequest, Cause, Limits, Phase, Refusal, StopRecord, StopTarget,
};

use crate::memory_toolbox::{Event, MemoryToolbox, Shared};
use crate::rig::{GENERATION, Rig, outcomes};
use crate::script::{Answer, OnCancel, Script, Tool, actions};

pub(crate) fn robot() -> StopTarget {
    StopTarget::Toolboxes(vec!["robot".into()])
}

pub(crate) fn rig() -> Rig {
    let rig = Rig::new();
    rig.toolbox
        .tool("swing", actions(&["swing left", "later left < swing"]));
    rig.toolbox.script("swing", Script::hangs());
    rig
}

pub(crate) async fn stop(rig: &Rig) -> String {
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(stopped.len(), 1);
    stopped[0].stop_id.clone()
}

#[tokio::test(start_paused = true)]
async fn a_stop_acts_before_its_first_await() {
    let rig = rig();
    rig.toolbox.halts(Answer::Never);
    let call = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    let stopped = rig.engine.stop(&robot(), "the button");
    assert!(rig.engine.latch("robot").is_some());
    assert_eq!(rig.toolbox.halted(), [(vec!["all".to_owned()], true)]);
    let CallLookup::InFlight(control) = rig.engine.find(&call.call_id) else {
        panic!("it runs");
    };
    assert!(matches!(control.cause(), Some(Cause::EmergencyStop { .. })));
    drop(stopped);
    let report = call.report().await;
    assert_eq!(report.outcome, CallOutcome::Stopped);
    assert_eq!(
        outcomes(&report),
        [("swing", Cancelled), ("later", Cancelled)].into()
    );
    assert!(rig.toolbox.cancelled("swing"));
    assert_eq!(
        rig.toolbox.halted().len(),
        1,
        "no gentle halt after the stop's own"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_may_come_from_a_thread_outside_the_runtime() {
    let rig = rig();
    let call = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    let engine = rig.engine.clone();
    let stopped = std::thread::spawn(move || engine.stop(&StopTarget::All, "a signal")).join();
    assert_eq!(call.report().await.outcome, CallOutcome::Stopped);
    assert_eq!(stopped.unwrap().await[0].unreached, None);
}

#[tokio::test]
async fn a_call_that_the_halt_ends_before_its_cancel_counts_as_stopped() {
    for on_cancel in [OnCancel::Ends(Duration::ZERO), OnCancel::Fails(Duration::ZERO)] {
        let rig = rig();
        rig.toolbox.script("swing", Script::hangs().on_cancel(on_cancel));
        let call = rig.motion("swing");
        rig.toolbox.until_started("swing").await;
        let (toolbox, (answered, is_answered)) = (rig.toolbox.clone(), std::sync::mpsc::channel());
        rig.toolbox.hook(move |event| {
            if matches!(event, Event::Halted { emergency: true, .. }) {
                toolbox.end_runs();
                // The stop continues only after the call has ended.
                is_answered.recv_timeout(Duration::from_secs(10)).unwrap();
            }
        });
        let engine = rig.engine.clone();
        let stopped = std::thread::spawn(move || drop(engine.stop(&robot(), "the button")));
        let report = call.report().await;
        answered.send(()).unwrap();
        stopped.join().unwrap();
        assert_eq!(report.outcome, CallOutcome::Stopped, "{report:?}");
        assert_eq!(
            outcomes(&report),
            [("swing", Cancelled), ("later", Cancelled)].into()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_gentle_halt_follows_an_emergency_stop_whatever_ended_the_call_before() {
    let earlier = [
        Cause::Cancelled { by: "a test".into() },
        Cause::UserStop,
        Cause::Preempted {
            tool: "hold".into(),
            call_id: "x".into(),
        },
        Cause::Shutdown,
    ];
    for cause in earlier {
        let rig = rig();
        rig.toolbox.script(
            "swing",
            Script::hangs().on_cancel(OnCancel::Ends(Duration::from_secs(1))),
        );
        let call = rig.motion("swing");
        rig.toolbox.until_started("swing").await;
        rig.end(&call, cause.clone());
        let halt = Event::Halted {
            subsystems: vec!["left".into()],
            emergency: false,
        };
        rig.toolbox
            .until("the first halt", |log| log.contains(&halt))
            .await;
        rig.engine.stop(&robot(), "a test").await;
        let report = call.report().await;
        assert_eq!(report.outcome, CallOutcome::Stopped, "{cause}");
        assert!(
            rig.toolbox.halted().last().unwrap().1,
            "{cause}: {:?}",
            rig.toolbox.halted()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_fail_and_new_ones_are_refused() {
    let rig = rig();
    let runs = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    let waits = rig.motion("swing");
    rig.phase(&waits, Phase::Queued).await;
    let plans = Tool {
        plan_takes: Duration::from_millis(500),
        ..Tool::default()
    };
    rig.toolbox.tool_with("think", plans);
    let thinks = rig.motion("think");
    let planned = Event::Planned("think".into());
    rig.toolbox.until("the plan", |log| log.contains(&planned)).await;
    let stop_id = stop(&rig).await;
    let cause = Cause::EmergencyStop {
        stop_id: stop_id.clone(),
        reason: "a test".into(),
    };
    assert_eq!(waits.refusal().await, Refusal::Ended(cause.clone()));
    assert_eq!(thinks.refusal().await, Refusal::Ended(cause));
    runs.report().await;
    let stop = StopRecord {
        stop_id,
        reason: "a test".into(),
    };
    for effect in [Effect::Motion, Effect::Write] {
        let refusal = rig.effect("swing", effect).refusal().await;
        let toolbox_id = "robot".into();
        assert_eq!(
            refusal,
            Refusal::Latched {
                toolbox_id,
                stop: stop.clone()
            },
            "{effect}"
        );
    }
    assert_eq!(rig.toolbox.started(), ["swing"]);
    rig.toolbox.script("swing", Script::takes(1));
    for effect in [Effect::Read, Effect::Safe] {
        assert_eq!(
            rig.effect("swing", effect).report().await.outcome,
            CallOutcome::Completed,
            "{effect}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_comes_while_a_wave_is_being_started_lets_no_more_of_it_start() {
    let rig = rig();
    let lines: Vec<_> = (0..300).map(|n| format!("a{n} s{n}")).collect();
    rig.toolbox.tool(
        "t",
        actions(&lines.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    let engine = rig.engine.clone();
    rig.toolbox.hook(move |event| {
        if matches!(event, Event::Started { action, .. } if action == "a7") {
            drop(engine.stop(&StopTarget::All, "a test"));
        }
    });
    let report = rig.motion("t").report().await;
    assert_eq!(report.outcome, CallOutcome::Stopped);
    assert_eq!(rig.toolbox.started().len(), 8);
    // The engine does not even send the others, which the toolbox would drop by their epoch.
    let dropped = |event: &Event| matches!(event, Event::Dropped { .. });
    assert!(!rig.toolbox.log().iter().any(dropped));
    assert_eq!(report.actions.len(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_never_refused() {
    let all = ["arm", "robot"];
    let named = |ids: &[&str]| StopTarget::Toolboxes(ids.iter().map(ToString::to_string).collect());
    let rows = [
        (StopTarget::All, &all[..]),
        (named(&["arm"]), &["arm"]),
        (named(&["arm", "robot"]), &all),
        (named(&["arm", "arm"]), &["arm"]),
        (named(&["unknown"]), &all),
        (named(&["arm", "unknown"]), &all),
        (named(&[""]), &all),
        (named(&[]), &all),
    ];
    for (target, expected) in rows {
        let rig = rig();
        let arm = MemoryToolbox::new();
        rig.engine
            .attach("arm", 7, Arc::new(Shared(arm.clone())), Limits::default());
        let stopped = rig.engine.stop(&target, "a test").await;
        let ids: Vec<_> = stopped
            .iter()
            .map(|stopped| stopped.toolbox_id.as_str())
            .collect();
        assert_eq!(ids, expected, "{target:?}");
        assert!(stopped.iter().all(|s| s.unreached.is_none()));
        assert!(rig.engine.latched().keys().eq(expected), "{target:?}");
        for (toolbox, id) in [(&arm, "arm"), (&rig.toolbox, "robot")] {
            assert_eq!(
                toolbox.halted().len(),
                usize::from(expected.contains(&id)),
                "{target:?}, {id}"
            );
        }
        // A second stop, while the toolbox is latched.
        assert_eq!(rig.engine.stop(&target, "again").await.len(), expected.len());
    }
}

#[tokio::test(start_paused = true)]
async fn every_toolbox_is_latched_and_halted_before_the_first_call_is_told() {
    let rig = rig();
    let arm = MemoryToolbox::new();
    rig.engine
        .attach("arm", 7, Arc::new(Shared(arm.clone())), Limits::default());
    let lease = rig.engine.lease("arm", 7).unwrap();
    let (engine, request) = (
        rig.engine.clone(),
        CallRequest {
            toolbox_id: "arm".into(),
            ..rig.request("swing")
        },
    );
    arm.script("swing", Script::hangs());
    let call_id = request.call_id.clone();
    let call = tokio::spawn(async move { engine.call(&lease, request).await });
    arm.until_started("swing").await;
    let CallLookup::InFlight(control) = rig.engine.find(&call_id) else {
        panic!("it runs");
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    for toolbox in [&arm, &rig.toolbox] {
        let (engine, control, seen) = (rig.engine.clone(), control.clone(), seen.clone());
        toolbox.hook(move |event| {
            if matches!(event, Event::Halted { emergency: true, .. }) {
                seen.lock()
                    .unwrap()
                    .push((engine.latched().len(), control.cause().is_some()));
            }
        });
    }
    rig.engine.stop(&StopTarget::All, "a test").await;
    assert_eq!(*seen.lock().unwrap(), [(2, false), (2, false)]);
    assert!(matches!(call.await.unwrap(), CallEnd::Ran { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_answer_names_the_halts_that_were_not_confirmed() {
    let rows = [
        (Answer::Yes, None),
        (Answer::No, Some("BackendError: the button is still pressed")),
        (Answer::Never, Some("its halt was not answered within 200 ms")),
    ];
    for (answer, expected) in rows {
        let rig = rig();
        rig.toolbox.halts(answer);
        let stopped = rig.engine.stop(&robot(), "a test").await;
        assert_eq!(stopped[0].unreached.as_deref(), expected);
        assert_eq!(
            rig.engine.latch("robot").unwrap().stop_id,
            stopped[0].stop_id,
            "latched all the same"
        );
    }
    let rig = rig();
    // A closed generation, with and without a newer one that confirms its halt.
    rig.toolbox.halts(Answer::Closed);
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(
        stopped[0].unreached.as_deref(),
        Some("ToolboxClosed: it is closed")
    );
    let next = Arc::new(Shared(MemoryToolbox::new()));
    rig.engine
        .attach("robot", GENERATION + 1, next, Limits::default());
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(stopped[0].unreached, None);
    // The same words from a generation that is there.
    rig.toolbox.halts(Answer::SaysClosed);
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(
        stopped[0].unreached.as_deref(),
        Some("ToolboxClosed: it is closed")
    );
    // The toolbox was given up until a reload, or is being restarted: it has no generation to halt.
    rig.engine.set_installed(&BTreeSet::from(["robot"]));
    rig.engine.detach("robot", GENERATION + 1);
    rig.engine.detach("robot", GENERATION);
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(stopped[0].unreached.as_deref(), Some("it is not running"));
    assert!(rig.engine.latch("robot").is_some());
}
