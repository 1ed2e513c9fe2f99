//! Emergency stop, latch, epoch and resume.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

#[path = "support/memory_toolbox.rs"]
mod memory_toolbox;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use memory_toolbox::{
    Answer, Event, GENERATION, MemoryToolbox, OnCancel, Rig, Script, Shared, Tool, actions, outcomes,
};
use ovos_toolbox_wire::Outcome::Cancelled;
use ovos_toolbox_wire::{CallOutcome, Effect};
use ovos_tools_engine::{
    CallEnd, CallRequest, Cause, Engine, Known, LiftError, Limits, MotionWatch, Phase, Refusal, ResumeError,
    StopRecord, StopTarget,
};

fn robot() -> StopTarget {
    StopTarget::Toolboxes(vec!["robot".into()])
}

fn rig() -> Rig {
    let rig = Rig::new();
    rig.toolbox
        .tool("swing", actions(&["swing left", "later left < swing"]));
    rig.toolbox.script("swing", Script::hangs());
    rig
}

async fn stop(rig: &Rig) -> String {
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(stopped.len(), 1);
    stopped[0].stop_id.clone()
}

#[tokio::test(start_paused = true)]
async fn everything_is_on_its_way_before_the_first_await() {
    let rig = rig();
    rig.toolbox.halts(Answer::Never);
    let call = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    let stopped = rig.engine.stop(&robot(), "the button");
    assert!(rig.engine.latch("robot").is_some());
    assert_eq!(rig.toolbox.halted(), [(vec!["all".to_owned()], true)]);
    let Known::InFlight(control) = rig.engine.find(&call.call_id) else {
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
async fn a_call_that_is_ended_by_the_halt_before_it_is_told_was_stopped_all_the_same() {
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
    let Known::InFlight(control) = rig.engine.find(&call_id) else {
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
async fn the_answer_says_what_could_not_be_reached() {
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
    // The toolbox was given up until a reload, or is being restarted: it has no generation to halt.
    rig.engine.set_installed(&BTreeSet::from(["robot"]));
    rig.engine.detach("robot", GENERATION + 1);
    rig.engine.detach("robot", GENERATION);
    let stopped = rig.engine.stop(&robot(), "a test").await;
    assert_eq!(stopped[0].unreached.as_deref(), Some("it is not running"));
    assert!(rig.engine.latch("robot").is_some());
}

/// Adds a toolbox `arm` beside `robot`, as a reload does.
fn with_arm(rig: &Rig) -> Arc<MemoryToolbox> {
    let arm = MemoryToolbox::new();
    rig.engine.set_installed(&BTreeSet::from(["arm", "robot"]));
    rig.engine
        .attach("arm", 7, Arc::new(Shared(arm.clone())), Limits::default());
    arm
}

/// Removes the arm, as a reload does: it is taken from the installed ones first, and closed when it is drained.
fn without_arm(rig: &Rig) {
    rig.engine.set_installed(&BTreeSet::from(["robot"]));
    rig.engine.detach("arm", 7);
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_removed_toolbox_stops_everything() {
    let rig = rig();
    with_arm(&rig);
    without_arm(&rig);
    let arm = StopTarget::Toolboxes(vec!["arm".into()]);
    for target in [arm, StopTarget::All] {
        let stopped = rig.engine.stop(&target, "a test").await;
        let told: Vec<_> = stopped
            .iter()
            .map(|s| (s.toolbox_id.as_str(), s.unreached.as_deref()))
            .collect();
        assert_eq!(told, [("robot", None)], "{target:?}");
    }
    assert_eq!(rig.toolbox.halted().len(), 2);
    assert!(
        rig.engine.latched().keys().eq(["robot"]),
        "nothing is remembered of it"
    );
    // It comes back unlatched, because the stops came after its removal.
    let arm = with_arm(&rig);
    assert_eq!((rig.engine.latch("arm"), arm.halted()), (None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_is_removed_but_not_closed_yet_is_still_stopped() {
    let rig = rig();
    let arm = with_arm(&rig);
    rig.engine.set_installed(&BTreeSet::from(["robot"]));
    let target = StopTarget::Toolboxes(vec!["arm".into()]);
    let stopped = rig.engine.stop(&target, "a test").await;
    assert_eq!((stopped.len(), stopped[0].toolbox_id.as_str()), (1, "arm"));
    assert_eq!((arm.halted().len(), rig.toolbox.halted().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_is_removed_while_it_is_latched_comes_back_latched_until_its_stop_is_lifted() {
    let rig = rig();
    with_arm(&rig);
    let first = rig.engine.stop(&StopTarget::All, "a test").await[0]
        .stop_id
        .clone();
    without_arm(&rig);
    let by_itself = rig.engine.resume("arm", &first).await;
    assert_eq!(by_itself, Err(ResumeError::NotInstalled("arm".into())));
    // A stop of everything latches the removed toolbox, too, and does not report it.
    let stopped = rig.engine.stop(&StopTarget::All, "again").await;
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    let second = stopped[0].stop_id.clone();
    let arm = with_arm(&rig);
    assert_eq!(rig.engine.latch("arm").unwrap().stop_id, second);
    assert_eq!(arm.halted().len(), 1, "halted as soon as it came");
    without_arm(&rig);

    let older = rig.engine.resume_all(&first).await.unwrap_err();
    assert_eq!(older, ResumeError::HoldsNothing(first));
    let resumed = rig.engine.resume_all(&second).await.unwrap();
    let told: Vec<_> = resumed
        .iter()
        .map(|it| (it.toolbox_id.as_str(), &it.refused))
        .collect();
    assert_eq!(told, [("robot", &None)], "no word of what is not there");
    assert!(rig.engine.latched().is_empty());
    with_arm(&rig);
    assert_eq!(rig.engine.latch("arm"), None);
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_is_being_started_is_stopped_by_name() {
    let rig = rig();
    rig.engine.set_installed(&BTreeSet::from(["arm", "robot"]));
    let target = StopTarget::Toolboxes(vec!["arm".into()]);
    let stopped = rig.engine.stop(&target, "a test").await;
    assert_eq!((stopped.len(), stopped[0].toolbox_id.as_str()), (1, "arm"));
    assert_eq!(rig.toolbox.halted(), [], "the other one is not meant");
    let arm = with_arm(&rig);
    assert_eq!(arm.halted(), [(vec!["all".to_owned()], true)]);
    assert!(rig.engine.latch("arm").is_some());
}

/// The stop that the service sets when it cannot read which toolboxes were latched: it may be any of them.
#[tokio::test(start_paused = true)]
async fn one_stop_holds_everything_that_is_loaded_until_it_is_lifted_as_such() {
    let record = |stop_id: &str| StopRecord {
        stop_id: stop_id.into(),
        reason: "what was latched cannot be read".into(),
    };
    let left = HashMap::from([
        ("all".to_owned(), record("stop-1")),
        ("leg".to_owned(), record("stop-0")),
    ]);
    let engine = Engine::new(8, left);
    let attach = |id: &str| {
        let toolbox = MemoryToolbox::new();
        engine.attach(id, 1, Arc::new(Shared(toolbox.clone())), Limits::default());
        toolbox
    };
    let arm = attach("arm");
    assert_eq!(arm.halted(), [(vec!["all".to_owned()], true)]);
    assert_eq!(engine.latch("arm"), Some(record("stop-1")));
    let held = |toolbox_id: &str, stop_id: &str| {
        Err(ResumeError::EverythingHeld {
            toolbox_id: toolbox_id.into(),
            stop_id: stop_id.into(),
        })
    };
    assert_eq!(engine.resume("arm", "stop-1").await, held("arm", "stop-1"));
    // A newer stop of everything replaces it, and so it outlives the service, too.
    let newer = engine.stop(&StopTarget::All, "a test").await[0].stop_id.clone();
    assert_eq!(engine.latched()["all"].stop_id, newer);
    assert!(
        engine.resume_all("stop-1").await.is_err(),
        "an older resume lifts nothing"
    );
    let base = attach("base");
    assert_eq!(engine.latch("base").unwrap().stop_id, newer);
    // A later stop of one toolbox stays when the stop of everything is lifted.
    let base_alone = StopTarget::Toolboxes(vec!["base".into()]);
    let of_base = engine.stop(&base_alone, "its own").await[0].stop_id.clone();
    assert_eq!(engine.resume("base", &of_base).await, held("base", &newer));
    base.resumes(Answer::Yes);
    arm.resumes(Answer::No);
    let resumed = engine.resume_all(&newer).await.unwrap();
    assert_eq!(resumed.len(), 1, "{resumed:?}");
    assert!(
        matches!(&resumed[0].refused, Some(ResumeError::Refused { .. })),
        "{resumed:?}"
    );
    assert_eq!(engine.latch("all"), None);
    assert!(engine.latched().keys().eq(["arm", "base"]));
    arm.resumes(Answer::Yes);
    engine.resume("arm", &newer).await.unwrap();
    engine.resume("base", &of_base).await.unwrap();
    assert_eq!(attach("late").halted(), []);
    assert!(engine.latched().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_everything_holds_what_is_still_being_loaded() {
    for (starting, held) in [(true, true), (false, false)] {
        for target in [StopTarget::All, StopTarget::Toolboxes(vec!["late".into()])] {
            let rig = rig();
            rig.engine.set_starting(starting);
            let stop_id = rig.engine.stop(&target, "a test").await[0].stop_id.clone();
            rig.engine.set_starting(false);
            let late = MemoryToolbox::new();
            let copy = Arc::new(Shared(late.clone()));
            rig.engine.attach("late", GENERATION, copy, Limits::default());
            assert_eq!(rig.engine.latch("late").is_some(), held, "{target:?}");
            assert_eq!(late.halted().len(), usize::from(held), "{target:?}");
            rig.toolbox.resumes(Answer::Yes);
            late.resumes(Answer::Yes);
            rig.engine.resume_all(&stop_id).await.unwrap();
            assert!(rig.engine.latched().is_empty(), "{target:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dropped_resume_has_lifted_is_seen() {
    let rig = rig();
    rig.engine.set_starting(true);
    let stop_id = rig.engine.stop(&StopTarget::All, "a test").await[0]
        .stop_id
        .clone();
    rig.toolbox.resumes(Answer::Never);
    let mut latches = rig.engine.watch_latches();
    latches.mark_unchanged();
    let resume = tokio::time::timeout(Duration::ZERO, rig.engine.resume_all(&stop_id));
    assert!(resume.await.is_err(), "the toolbox does not answer");
    assert!(latches.has_changed().unwrap());
    assert!(
        rig.engine.latched().keys().eq(["robot"]),
        "the stop of everything is lifted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resume_lifts_only_the_stop_it_names() {
    let rig = rig();
    rig.toolbox.script("swing", Script::takes(1));
    let nothing = rig.engine.resume("robot", "stop-0").await.unwrap_err();
    let latch = |source| ResumeError::Latch {
        toolbox_id: "robot".into(),
        source,
    };
    assert_eq!(nothing, latch(LiftError::NotLatched));
    assert_eq!(
        rig.engine.resume("unknown", "stop-0").await.unwrap_err(),
        ResumeError::UnknownToolbox("unknown".into())
    );
    let older = stop(&rig).await;
    let newer = stop(&rig).await;
    assert_ne!(older, newer);
    let refused = rig.engine.resume("robot", &older).await.unwrap_err();
    assert_eq!(
        refused,
        latch(LiftError::OtherStop {
            given: older,
            current: newer.clone()
        })
    );
    assert!(rig.engine.latch("robot").is_some());
    rig.engine.resume("robot", &newer).await.unwrap();
    assert_eq!(rig.engine.latch("robot"), None);
    assert_eq!(rig.motion("swing").report().await.outcome, CallOutcome::Completed);
    assert!(rig.engine.resume("robot", &newer).await.is_err(), "and only once");
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_may_refuse_to_be_resumed() {
    for (answer, expected) in [
        (Answer::No, "the button is still pressed"),
        (Answer::Never, "it did not answer"),
    ] {
        let rig = rig();
        rig.toolbox.resumes(answer);
        let stop_id = stop(&rig).await;
        let error = rig.engine.resume("robot", &stop_id).await.unwrap_err();
        assert_eq!(error.to_string(), format!("toolbox `robot` refuses: {expected}"));
        assert_eq!(rig.engine.latch("robot").unwrap().stop_id, stop_id);
    }
    let rig = rig();
    let stop_id = stop(&rig).await;
    rig.engine.set_installed(&BTreeSet::from(["robot"]));
    rig.engine.detach("robot", GENERATION);
    assert_eq!(
        rig.engine.resume("robot", &stop_id).await,
        Err(ResumeError::NotRunning("robot".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_comes_while_the_toolbox_is_asked_is_not_lifted() {
    let rig = rig();
    let older = stop(&rig).await;
    let engine = rig.engine.clone();
    rig.toolbox.hook(move |event| {
        if *event == Event::Resumed {
            drop(engine.stop(&StopTarget::All, "pressed again"));
        }
    });
    let error = rig.engine.resume("robot", &older).await.unwrap_err();
    assert!(
        matches!(
            error,
            ResumeError::Latch {
                source: LiftError::OtherStop { .. },
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(rig.engine.latch("robot").unwrap().reason, "pressed again");
}

#[tokio::test(start_paused = true)]
async fn a_call_from_before_a_stop_starts_nothing_after_the_resume() {
    let rig = rig();
    rig.toolbox.script(
        "swing",
        Script::hangs().on_cancel(OnCancel::Completes(Duration::from_secs(1))),
    );
    let call = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    let stop_id = stop(&rig).await;
    rig.engine.resume("robot", &stop_id).await.unwrap();
    let report = call.report().await;
    assert_eq!(rig.toolbox.started(), ["swing"], "{report:?}");
    assert_eq!(report.outcome, CallOutcome::Stopped);
}

#[tokio::test(start_paused = true)]
async fn the_latch_outlives_reloads_and_restarts() {
    let rig = rig();
    let stop_id = stop(&rig).await;
    rig.engine.attach(
        "robot",
        2,
        Arc::new(Shared(rig.toolbox.clone())),
        Limits::default(),
    );
    rig.engine.detach("robot", GENERATION);
    let lease = rig.engine.lease("robot", 2).unwrap();
    let end = rig.engine.call(&lease, rig.request("swing")).await;
    assert!(
        matches!(end, CallEnd::Refused(Refusal::Latched { .. })),
        "{end:?}"
    );

    // The next run of the service gets the latches that this one left behind.
    let left: HashMap<_, _> = rig.engine.latched().into_iter().collect();
    let engine = Engine::new(8, left.clone());
    assert_eq!(
        engine.latched().into_iter().collect::<HashMap<_, _>>(),
        left,
        "also while it is not loaded"
    );
    engine.attach(
        "robot",
        1,
        Arc::new(Shared(rig.toolbox.clone())),
        Limits::default(),
    );
    let lease = engine.lease("robot", 1).unwrap();
    let end = engine.call(&lease, rig.request("swing")).await;
    assert!(
        matches!(end, CallEnd::Refused(Refusal::Latched { .. })),
        "{end:?}"
    );
    engine.resume("robot", &stop_id).await.unwrap();
    assert!(engine.latched().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_is_not_loaded_yet_is_held_like_any_other() {
    let record = |stop_id: &str| StopRecord {
        stop_id: stop_id.into(),
        reason: "before the restart".into(),
    };
    let engine = Engine::new(8, HashMap::from([("arm".to_owned(), record("stop-1"))]));
    assert_eq!(engine.latch("arm"), Some(record("stop-1")));
    engine.set_installed(&BTreeSet::from(["arm"]));
    let not_running = Err(ResumeError::NotRunning("arm".into()));
    assert_eq!(engine.resume("arm", "stop-1").await, not_running);
    let stopped = engine.stop(&StopTarget::All, "a test").await;
    assert_eq!(stopped[0].unreached.as_deref(), Some("it is not running"));
    let arm = Shared(MemoryToolbox::new());
    engine.attach("arm", 1, Arc::new(arm), Limits::default());
    assert!(
        engine.resume("arm", "stop-1").await.is_err(),
        "a newer stop holds it"
    );
    engine.resume("arm", &stopped[0].stop_id).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_change_of_a_latch_can_be_watched() {
    let rig = rig();
    let mut changes = rig.engine.watch_latches();
    let mut changed = || {
        let changed = changes.has_changed().unwrap();
        changes.mark_unchanged();
        changed
    };
    assert!(!changed());
    let stop_id = stop(&rig).await;
    assert!(changed());
    rig.engine.resume("robot", "stop-0").await.unwrap_err();
    assert!(!changed());
    rig.engine.resume("robot", &stop_id).await.unwrap();
    assert!(changed());
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_stops_by_itself_before_it_is_live_stops_nobody_else() {
    let rig = rig();
    let stopped = rig.engine.stop_itself("arm", "its button is pressed").await;
    let ids: Vec<_> = stopped
        .iter()
        .map(|stopped| stopped.toolbox_id.as_str())
        .collect();
    assert_eq!(ids, ["arm"]);
    assert_eq!((rig.engine.latch("robot"), rig.toolbox.halted()), (None, vec![]));
    let arm = MemoryToolbox::new();
    rig.engine
        .attach("arm", 1, Arc::new(Shared(arm.clone())), Limits::default());
    assert_eq!(rig.engine.latch("arm").unwrap().stop_id, stopped[0].stop_id);
    assert_eq!(arm.halted(), [(vec!["all".to_owned()], true)]);
}

/// Otherwise a toolbox that reports a stop from its own halt would be latched again and again.
#[tokio::test(start_paused = true)]
async fn a_toolbox_that_stops_itself_while_it_is_stopped_changes_nothing() {
    let rig = rig();
    let engine = Arc::downgrade(&rig.engine);
    let echoes = Arc::new(Mutex::new(0));
    let count = echoes.clone();
    rig.toolbox.hook(move |event| {
        if let (Event::Halted { emergency: true, .. }, Some(engine)) = (event, engine.upgrade()) {
            *count.lock().unwrap() += 1;
            // On another thread, like a real event.
            let said = std::thread::spawn(move || drop(engine.stop_itself("robot", "its button")));
            said.join().unwrap();
        }
    });
    let stop_id = stop(&rig).await;
    assert_eq!(*echoes.lock().unwrap(), 1);
    assert_eq!(rig.engine.latch("robot").unwrap().stop_id, stop_id);
    rig.engine.resume("robot", &stop_id).await.unwrap();
    assert_eq!(rig.engine.latch("robot"), None);
}

/// A stop that the toolbox reports during its resume is newer than the stop that is being lifted.
#[tokio::test(start_paused = true)]
async fn a_toolbox_that_stops_itself_during_its_resume_stays_stopped() {
    let rig = rig();
    let stop_id = stop(&rig).await;
    let engine = Arc::downgrade(&rig.engine);
    rig.toolbox.hook(move |event| {
        if let (Event::Resumed, Some(engine)) = (event, engine.upgrade()) {
            drop(engine.stop_itself("robot", "its button"));
        }
    });
    assert!(rig.engine.resume("robot", &stop_id).await.is_err());
    let holder = rig.engine.latch("robot").unwrap();
    assert_ne!(holder.stop_id, stop_id);
    assert_eq!(holder.reason, "its button");
}

/// A generation that is being drained drives the same machine.
#[tokio::test(start_paused = true)]
async fn every_copy_that_is_there_has_a_say_in_a_resume() {
    let rig = rig();
    rig.toolbox.resumes(Answer::No);
    let stop_id = stop(&rig).await;
    let next = MemoryToolbox::new();
    let limits = Limits::default();
    rig.engine
        .attach("robot", GENERATION + 1, Arc::new(Shared(next.clone())), limits);
    let refused = rig.engine.resume("robot", &stop_id).await;
    assert!(matches!(refused, Err(ResumeError::Refused { .. })), "{refused:?}");
    assert_eq!(
        next.log().last(),
        Some(&Event::Resumed),
        "the newest was asked too"
    );
    rig.engine.detach("robot", GENERATION);
    rig.engine.resume("robot", &stop_id).await.unwrap();
}

/// A watch that takes some time for its record.
#[derive(Default)]
struct Moving {
    told: Arc<Mutex<Vec<String>>>,
    takes: Option<Duration>,
    fails: bool,
}

impl MotionWatch for Moving {
    fn changed(&self, moving: &[&str]) {
        self.told.lock().unwrap().push(moving.join(" "));
    }

    fn recorded(&self) -> BoxFuture<'static, Result<(), String>> {
        let (takes, fails) = (self.takes, self.fails);
        Box::pin(async move {
            match takes {
                Some(takes) => tokio::time::sleep(takes).await,
                None => tokio::task::yield_now().await,
            }
            if fails {
                Err("the disk is full".to_owned())
            } else {
                Ok(())
            }
        })
    }
}

/// A motion call starts only when it is on record. Other calls do not wait for the record, safe calls least of all.
#[tokio::test(start_paused = true)]
async fn a_call_that_moves_waits_for_its_record_for_a_second() {
    let record = |takes_ms: u64, fails| {
        let rig = rig();
        rig.engine.watch_motion(Arc::new(Moving {
            takes: Some(Duration::from_millis(takes_ms)),
            fails,
            ..Moving::default()
        }));
        for name in ["look", "go"] {
            rig.toolbox.tool(name, actions(&[name]));
            rig.toolbox.script(name, Script::takes(0));
        }
        rig
    };
    let rig = record(10_000, false);
    let began = tokio::time::Instant::now();
    for effect in [Effect::Read, Effect::Write, Effect::Safe] {
        rig.effect("look", effect).report().await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    let refusal = rig.motion("go").refusal().await;
    let limit = Duration::from_secs(1);
    assert_eq!(
        (refusal, began.elapsed()),
        (Refusal::RecordTooLong { limit }, limit)
    );
    assert_eq!(rig.toolbox.started(), ["look"; 3]);
    assert!(
        !*rig.engine.motion().borrow(),
        "it does not count as moving any more"
    );

    // A cause that ends calls ends this wait, too, and a stop does not wait for the record.
    let call = rig.motion("go");
    rig.toolbox
        .until("a second plan", |log| {
            log.iter()
                .filter(|event| **event == Event::Planned("go".into()))
                .count()
                == 2
        })
        .await;
    let began = tokio::time::Instant::now();
    let stop_id = stop(&rig).await;
    let cause = Cause::EmergencyStop {
        stop_id,
        reason: "a test".into(),
    };
    assert_eq!(call.refusal().await, Refusal::Ended(cause));
    assert_eq!(began.elapsed(), Duration::ZERO);

    let rig = record(900, false);
    assert_eq!(rig.motion("go").report().await.outcome, CallOutcome::Completed);
    let rig = record(0, true);
    let why = "the disk is full".to_owned();
    assert_eq!(rig.motion("go").refusal().await, Refusal::NotRecorded { why });
    assert_eq!(rig.toolbox.started(), [""; 0]);
}

/// The record names the toolbox from before the first start until the machine is at rest.
#[tokio::test(start_paused = true)]
async fn what_moves_is_known_from_before_its_first_start_until_it_rests() {
    let rig = rig();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    rig.engine.watch_motion(Arc::new(Moving {
        told: told.clone(),
        ..Moving::default()
    }));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (at_start, known) = (seen.clone(), told.clone());
    rig.toolbox.hook(move |event| {
        if let Event::Started { .. } = event {
            at_start.lock().unwrap().push(known.lock().unwrap().clone());
        }
    });
    rig.toolbox.tool("look", actions(&["look"]));
    rig.effect("look", Effect::Read).report().await;
    assert_eq!(*told.lock().unwrap(), [] as [String; 0], "reading moves nothing");
    let call = rig.motion("swing");
    rig.toolbox.until_started("swing").await;
    rig.end(&call, Cause::UserStop);
    assert_eq!(*told.lock().unwrap(), ["robot"]);
    call.report().await;
    assert_eq!(*told.lock().unwrap(), ["robot", ""]);
    assert_eq!(*seen.lock().unwrap(), [vec![], vec!["robot".to_owned()]]);
}
