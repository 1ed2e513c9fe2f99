//! Safe calls: they go first and go on to their end state. A cancel or a timeout does not end them; an emergency stop
//! or a newer safe call does.

use std::time::Duration;

use ovos_toolbox_wire::Outcome::{Abandoned, Cancelled, Completed};
use ovos_toolbox_wire::{Action, CallOutcome, Effect};
use ovos_tools_engine::{CallEnd, CallRequest, Cause, Limits, Phase, Refusal, StopTarget};

use crate::memory_toolbox::Event;
use crate::rig::{Rig, line, outcomes};
use crate::script::{OnCancel, Script, Tool, action, actions};

fn rig() -> Rig {
    let rig = Rig::new();
    rig.toolbox
        .tool("fly", actions(&["climb flight", "cruise flight < climb"]));
    rig.toolbox.tool("film", actions(&["record camera"]));
    rig.toolbox.tool(
        "land",
        actions(&["descend flight", "touch_down flight < descend"]),
    );
    rig.toolbox.tool("hold", actions(&["brake flight"]));
    rig.toolbox.script("climb", Script::hangs());
    rig.toolbox.script("descend", Script::takes(60_000));
    rig
}

#[tokio::test(start_paused = true)]
async fn a_safe_call_ends_the_calls_that_hold_its_subsystems_or_wait_for_them() {
    let rig = rig();
    let flies = rig.motion("fly");
    let films = rig.motion("film");
    rig.toolbox.until_started("climb").await;
    let waits = rig.motion("fly");
    rig.phase(&waits, Phase::Queued).await;
    rig.toolbox.script("record", Script::takes(100_000));
    let lands = rig.effect("land", Effect::Safe);
    let cause = Cause::Preempted {
        tool: "land".into(),
        call_id: lands.call_id.clone(),
    };
    let CallEnd::Ran {
        report, cause: found, ..
    } = flies.end().await
    else {
        panic!("it ran");
    };
    assert_eq!(
        outcomes(&report),
        [("climb", Cancelled), ("cruise", Cancelled)].into()
    );
    assert_eq!(found, Some(cause.clone()));
    assert_eq!(waits.refusal().await, Refusal::Ended(cause));
    assert_eq!(lands.report().await.outcome, CallOutcome::Completed);
    assert_eq!(
        films.report().await.outcome,
        CallOutcome::Completed,
        "it shares nothing"
    );
    let halt = Event::Halted {
        subsystems: vec!["flight".into()],
        emergency: false,
    };
    let descend = Event::Started {
        call: "call-4".into(),
        action: "descend".into(),
    };
    assert!(
        rig.toolbox.place(&halt) < rig.toolbox.place(&descend),
        "first halted, then brought down"
    );
    let last_halt = rig
        .toolbox
        .log()
        .iter()
        .rposition(|event| *event == halt)
        .unwrap();
    assert!(
        last_halt < rig.toolbox.place(&descend),
        "what lands is not halted by what it took the place of"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_after_a_safe_one_waits_for_it() {
    let rig = rig();
    let lands = rig.effect("land", Effect::Safe);
    rig.toolbox.until_started("descend").await;
    rig.toolbox.script("climb", Script::takes(1));
    let flies = rig.spawn(rig.request("fly"));
    rig.phase(&flies, Phase::Queued).await;
    let start = tokio::time::Instant::now();
    let refusal = flies.refusal().await;
    assert!(matches!(refusal, Refusal::WaitTooLong { .. }), "{refusal}");
    assert_eq!(start.elapsed(), Limits::default().max_wait);
    lands.report().await;
    rig.motion("fly").report().await;
}

#[tokio::test(start_paused = true)]
async fn a_safe_call_is_not_ended_by_cancel_timeout_user_stop_or_bus_loss() {
    for what in ["cancel", "timeout", "action timeout", "user stop", "bus loss"] {
        let rig = rig();
        let request = CallRequest {
            effect: Effect::Safe,
            ..rig.request("land")
        };
        let call = rig.spawn(match what {
            "timeout" => CallRequest {
                timeout: Some(Duration::from_secs(1)),
                ..request
            },
            "action timeout" => CallRequest {
                action_timeout: Some(Duration::from_secs(1)),
                ..request
            },
            _ => request,
        });
        rig.toolbox.until_started("descend").await;
        match what {
            "cancel" => rig.end(&call, Cause::Cancelled { by: "a test".into() }),
            "user stop" => assert_eq!(rig.engine.user_stop(None), 1),
            "bus loss" => _ = rig.engine.bus_lost(Duration::from_secs(1)),
            _ => {}
        }
        let CallEnd::Ran { report, cause, .. } = call.end().await else {
            panic!("{what}: it ran");
        };
        assert_eq!(
            outcomes(&report),
            [("descend", Completed), ("touch_down", Completed)].into(),
            "{what}"
        );
        assert_eq!(
            cause.is_some(),
            ["cancel", "timeout", "user stop"].contains(&what),
            "{what}: {cause:?}"
        );
        assert!(
            rig.toolbox.halted().is_empty() && !rig.toolbox.cancelled("descend"),
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_safe_call_keeps_its_place_whatever_ends_other_calls() {
    let rig = rig();
    rig.toolbox
        .script("climb", Script::hangs().on_cancel(OnCancel::Ignores));
    let flies = rig.motion("fly");
    rig.toolbox.until_started("climb").await;
    let lands = rig.spawn(CallRequest {
        effect: Effect::Safe,
        timeout: Some(Duration::from_millis(10)),
        ..rig.request("land")
    });
    rig.phase(&lands, Phase::Queued).await;
    rig.engine.user_stop(None);
    assert_eq!(line(&flies.report().await, "climb").outcome, Abandoned);
    assert_eq!(lands.report().await.outcome, CallOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_newer_safe_call_takes_the_place_of_an_older_one() {
    let rig = rig();
    let lands = rig.effect("land", Effect::Safe);
    rig.toolbox.until_started("descend").await;
    let holds = rig.effect("hold", Effect::Safe);
    let cause = Cause::Preempted {
        tool: "hold".into(),
        call_id: holds.call_id.clone(),
    };
    let CallEnd::Ran {
        report, cause: found, ..
    } = lands.end().await
    else {
        panic!("it ran");
    };
    assert_eq!(
        outcomes(&report),
        [("descend", Cancelled), ("touch_down", Cancelled)].into()
    );
    assert_eq!(found, Some(cause));
    assert_eq!(holds.report().await.outcome, CallOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_newer_safe_call_takes_the_place_of_an_older_one_that_still_waits() {
    let rig = rig();
    let flies = rig.motion("fly");
    rig.toolbox.until_started("climb").await;
    let lands = rig.effect("land", Effect::Safe);
    rig.phase(&lands, Phase::Queued).await;
    let holds = rig.effect("hold", Effect::Safe);
    rig.phase(&holds, Phase::Queued).await;
    let cause = Cause::Preempted {
        tool: "hold".into(),
        call_id: holds.call_id.clone(),
    };
    assert_eq!(lands.refusal().await, Refusal::Ended(cause));
    assert_eq!(holds.report().await.outcome, CallOutcome::Completed);
    flies.report().await;
    assert!(!rig.toolbox.started().contains(&"descend".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_emergency_stop_ends_it_without_a_gentle_halt() {
    let rig = rig();
    let lands = rig.effect("land", Effect::Safe);
    rig.toolbox.until_started("descend").await;
    let stopped = rig.engine.stop(&StopTarget::All, "a test");
    let report = lands.report().await;
    assert_eq!(report.outcome, CallOutcome::Stopped);
    assert_eq!(
        outcomes(&report),
        [("descend", Cancelled), ("touch_down", Cancelled)].into()
    );
    stopped.await;
    assert_eq!(rig.toolbox.halted(), [(vec!["all".to_owned()], true)]);
}

#[tokio::test(start_paused = true)]
async fn safe_and_read_tools_work_while_latched_and_safe_ones_ignore_full_lines() {
    let rig = Rig::with(Limits {
        max_waiting: 0,
        ..Limits::default()
    });
    rig.toolbox.tool("hold", actions(&["brake flight"]));
    rig.engine.stop(&StopTarget::All, "a test").await;
    for effect in [Effect::Safe, Effect::Read] {
        assert_eq!(
            rig.effect("hold", effect).report().await.outcome,
            CallOutcome::Completed,
            "{effect}"
        );
    }
    let first = rig.effect("hold", Effect::Safe);
    let second = rig.effect("hold", Effect::Safe);
    first.report().await;
    second.report().await;
}

#[tokio::test(start_paused = true)]
async fn a_safe_call_without_a_report_ends_after_the_safe_limit() {
    let rig = rig();
    rig.toolbox.script("descend", Script::hangs());
    let start = tokio::time::Instant::now();
    let report = rig.effect("land", Effect::Safe).report().await;
    assert_eq!(start.elapsed(), Limits::default().safe_limit);
    assert_eq!(line(&report, "descend").outcome, Abandoned);
    assert!(!rig.toolbox.cancelled("descend"), "it is left to go on");
}

#[tokio::test(start_paused = true)]
async fn a_safe_action_inside_a_motion_call_goes_on_when_the_call_is_ended() {
    let rig = Rig::new();
    let safe = Action {
        effect: Some(Effect::Safe),
        ..action("stow left")
    };
    rig.toolbox.tool_with(
        "t",
        Tool {
            plan: Some(vec![safe, action("swing right")]),
            ..Tool::default()
        },
    );
    rig.toolbox.script("swing", Script::hangs());
    let call = rig.motion("t");
    rig.toolbox.until_started("swing").await;
    rig.end(&call, Cause::UserStop);
    let report = call.report().await;
    assert_eq!(
        outcomes(&report),
        [("stow", Completed), ("swing", Cancelled)].into()
    );
    assert!(
        rig.toolbox
            .halted()
            .iter()
            .all(|(subsystems, _)| subsystems == &["right"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_still_being_planned_does_not_undo_a_safe_one() {
    let rig = rig();
    rig.toolbox.script("descend", Script::takes(10));
    let slow = |plan: &[&str]| Tool {
        plan: Some(actions(plan)),
        plan_takes: Duration::from_millis(900),
        ..Tool::default()
    };
    rig.toolbox.tool_with("fly", slow(&["climb flight"]));
    let flies = rig.motion("fly");
    rig.phase(&flies, Phase::Planning).await;
    tokio::time::advance(Duration::from_millis(1)).await;
    let lands = rig.effect("land", Effect::Safe);
    let cause = Cause::Preempted {
        tool: "land".into(),
        call_id: lands.call_id.clone(),
    };
    assert_eq!(lands.report().await.outcome, CallOutcome::Completed);
    assert_eq!(flies.refusal().await, Refusal::Ended(cause));
    rig.toolbox.script("climb", Script::takes(1));
    rig.motion("fly").report().await;
}
