//! The latch: what a stop holds, across removals, reloads and restarts, and what a resume lifts.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ovos_toolbox_wire::CallOutcome;
use ovos_tools_engine::{CallEnd, Engine, LiftError, Limits, Refusal, ResumeError, StopRecord, StopTarget};

use crate::memory_toolbox::{Event, MemoryToolbox, Shared};
use crate::rig::{GENERATION, Rig};
use crate::script::{Answer, OnCancel, Script};
use crate::stop::{rig, stop};

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
        let ids: Vec<_> = stopped
            .iter()
            .map(|s| (s.toolbox_id.as_str(), s.unreached.as_deref()))
            .collect();
        assert_eq!(ids, [("robot", None)], "{target:?}");
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
    let by_itself = rig.engine.resume("arm", &first, "a test").await;
    assert_eq!(by_itself, Err(ResumeError::NotInstalled("arm".into())));
    // A stop of everything latches the removed toolbox, too, and does not report it.
    let stopped = rig.engine.stop(&StopTarget::All, "again").await;
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    let second = stopped[0].stop_id.clone();
    let arm = with_arm(&rig);
    assert_eq!(rig.engine.latch("arm").unwrap().stop_id, second);
    assert_eq!(arm.halted().len(), 1, "halted as soon as it came");
    without_arm(&rig);

    let older = rig.engine.resume_all(&first, "a test").await.unwrap_err();
    assert_eq!(older, ResumeError::HoldsNothing(first));
    let resumed = rig.engine.resume_all(&second, "a test").await.unwrap();
    let answers: Vec<_> = resumed
        .iter()
        .map(|it| (it.toolbox_id.as_str(), &it.refused))
        .collect();
    assert_eq!(answers, [("robot", &None)], "no word of what is not there");
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
async fn one_stop_holds_every_toolbox_until_a_resume_of_everything() {
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
    assert_eq!(
        engine.resume("arm", "stop-1", "a test").await,
        held("arm", "stop-1")
    );
    // A newer stop of everything replaces it, and so it outlives the service, too.
    let newer = engine.stop(&StopTarget::All, "a test").await[0].stop_id.clone();
    assert_eq!(engine.latched()["all"].stop_id, newer);
    assert!(
        engine.resume_all("stop-1", "a test").await.is_err(),
        "an older resume lifts nothing"
    );
    let base = attach("base");
    assert_eq!(engine.latch("base").unwrap().stop_id, newer);
    // A later stop of one toolbox stays when the stop of everything is lifted.
    let base_alone = StopTarget::Toolboxes(vec!["base".into()]);
    let of_base = engine.stop(&base_alone, "its own").await[0].stop_id.clone();
    assert_eq!(
        engine.resume("base", &of_base, "a test").await,
        held("base", &newer)
    );
    base.resumes(Answer::Yes);
    arm.resumes(Answer::No);
    let resumed = engine.resume_all(&newer, "a test").await.unwrap();
    assert_eq!(resumed.len(), 1, "{resumed:?}");
    assert!(
        matches!(&resumed[0].refused, Some(ResumeError::Refused { .. })),
        "{resumed:?}"
    );
    assert_eq!(engine.latch("all"), None);
    assert!(engine.latched().keys().eq(["arm", "base"]));
    arm.resumes(Answer::Yes);
    engine.resume("arm", &newer, "a test").await.unwrap();
    engine.resume("base", &of_base, "a test").await.unwrap();
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
            rig.engine.resume_all(&stop_id, "a test").await.unwrap();
            assert!(rig.engine.latched().is_empty(), "{target:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_resume_still_notifies_of_what_it_has_lifted() {
    let rig = rig();
    rig.engine.set_starting(true);
    let stop_id = rig.engine.stop(&StopTarget::All, "a test").await[0]
        .stop_id
        .clone();
    rig.toolbox.resumes(Answer::Never);
    let mut latches = rig.engine.watch_latches();
    latches.mark_unchanged();
    let resume = tokio::time::timeout(Duration::ZERO, rig.engine.resume_all(&stop_id, "a test"));
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
    let nothing = rig.engine.resume("robot", "stop-0", "a test").await.unwrap_err();
    let latch = |source| ResumeError::Latch {
        toolbox_id: "robot".into(),
        source,
    };
    assert_eq!(nothing, latch(LiftError::NotLatched));
    assert_eq!(
        rig.engine
            .resume("unknown", "stop-0", "a test")
            .await
            .unwrap_err(),
        ResumeError::UnknownToolbox("unknown".into())
    );
    let older = stop(&rig).await;
    let newer = stop(&rig).await;
    assert_ne!(older, newer);
    let refused = rig.engine.resume("robot", &older, "a test").await.unwrap_err();
    assert_eq!(
        refused,
        latch(LiftError::OtherStop {
            given: older,
            current: newer.clone()
        })
    );
    assert!(rig.engine.latch("robot").is_some());
    rig.engine.resume("robot", &newer, "a test").await.unwrap();
    assert_eq!(rig.engine.latch("robot"), None);
    assert_eq!(rig.motion("swing").report().await.outcome, CallOutcome::Completed);
    assert!(
        rig.engine.resume("robot", &newer, "a test").await.is_err(),
        "and only once"
    );
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
        let error = rig.engine.resume("robot", &stop_id, "a test").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("toolbox `robot` refuses to resume: {expected}")
        );
        assert_eq!(rig.engine.latch("robot").unwrap().stop_id, stop_id);
    }
    let rig = rig();
    let stop_id = stop(&rig).await;
    rig.engine.set_installed(&BTreeSet::from(["robot"]));
    rig.engine.detach("robot", GENERATION);
    assert_eq!(
        rig.engine.resume("robot", &stop_id, "a test").await,
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
    let error = rig.engine.resume("robot", &older, "a test").await.unwrap_err();
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
    rig.engine.resume("robot", &stop_id, "a test").await.unwrap();
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
    engine.resume("robot", &stop_id, "a test").await.unwrap();
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
    assert_eq!(engine.resume("arm", "stop-1", "a test").await, not_running);
    let stopped = engine.stop(&StopTarget::All, "a test").await;
    assert_eq!(stopped[0].unreached.as_deref(), Some("it is not running"));
    let arm = Shared(MemoryToolbox::new());
    engine.attach("arm", 1, Arc::new(arm), Limits::default());
    assert!(
        engine.resume("arm", "stop-1", "a test").await.is_err(),
        "a newer stop holds it"
    );
    engine.resume("arm", &stopped[0].stop_id, "a test").await.unwrap();
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
    rig.engine.resume("robot", "stop-0", "a test").await.unwrap_err();
    assert!(!changed());
    rig.engine.resume("robot", &stop_id, "a test").await.unwrap();
    assert!(changed());
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_stops_by_itself_before_it_is_live_stops_no_other() {
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
            let stop = std::thread::spawn(move || drop(engine.stop_itself("robot", "its button")));
            stop.join().unwrap();
        }
    });
    let stop_id = stop(&rig).await;
    assert_eq!(*echoes.lock().unwrap(), 1);
    assert_eq!(rig.engine.latch("robot").unwrap().stop_id, stop_id);
    rig.engine.resume("robot", &stop_id, "a test").await.unwrap();
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
    assert!(rig.engine.resume("robot", &stop_id, "a test").await.is_err());
    let holder = rig.engine.latch("robot").unwrap();
    assert_ne!(holder.stop_id, stop_id);
    assert_eq!(holder.reason, "its button");
}

/// A generation that is being drained drives the same machine.
#[tokio::test(start_paused = true)]
async fn every_live_copy_has_to_agree_to_a_resume() {
    let rig = rig();
    rig.toolbox.resumes(Answer::No);
    let stop_id = stop(&rig).await;
    let next = MemoryToolbox::new();
    let limits = Limits::default();
    rig.engine
        .attach("robot", GENERATION + 1, Arc::new(Shared(next.clone())), limits);
    let refused = rig.engine.resume("robot", &stop_id, "a test").await;
    assert!(matches!(refused, Err(ResumeError::Refused { .. })), "{refused:?}");
    assert_eq!(
        next.log().last(),
        Some(&Event::Resumed),
        "the newest was asked too"
    );
    rig.engine.detach("robot", GENERATION);
    rig.engine.resume("robot", &stop_id, "a test").await.unwrap();
}
