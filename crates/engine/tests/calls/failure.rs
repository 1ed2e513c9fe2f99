//! The effect of an action that does not complete on the other actions, and on the report.

use std::time::Duration;

use ovos_toolbox_wire::Outcome::{Completed, Failed, Skipped, TimedOut};
use ovos_toolbox_wire::{CallOutcome, Conclusion, Effect, Failure, Outcome};
use ovos_tools_engine::{CallEnd, CallRequest, Verdict};
use serde_json::json;

use crate::rig::{Rig, line, outcomes};
use crate::script::{OnCancel, Script, Then, Tool, actions};

async fn check(lines: &[&str], scripts: &[(&str, Script)], expected: &[(&str, Outcome)]) {
    let rig = Rig::new();
    rig.toolbox.tool("t", actions(lines));
    for (action, script) in scripts {
        rig.toolbox.script(action, script.clone());
    }
    let report = rig.motion("t").report().await;
    let ids: Vec<_> = report.actions.iter().map(|line| line.id.clone()).collect();
    let declared: Vec<_> = expected.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(ids, declared, "one line an action, in the plan's order");
    assert_eq!(outcomes(&report), expected.iter().copied().collect(), "{lines:?}");
    assert_eq!(report.outcome, CallOutcome::Failed, "{lines:?}");
    for line in report.actions {
        let started = rig.toolbox.started().contains(&line.id);
        assert_eq!(
            line.outcome == Skipped,
            !started,
            "`{}` is {:?}",
            line.id,
            line.outcome
        );
        assert_eq!(
            line.error.is_some(),
            line.outcome != Completed,
            "`{}` says why",
            line.id
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_its_subsystem_is_skipped_and_the_others_finish() {
    let fails = || ("bad", Script::fails(10));
    check(
        &[
            "bad left",
            "next left",
            "other right",
            "other2 right",
            "free",
            "later gantry < other",
        ],
        &[fails()],
        &[
            ("bad", Failed),
            ("next", Skipped),
            ("other", Completed),
            ("other2", Completed),
            ("free", Completed),
            ("later", Skipped),
        ],
    )
    .await;
    // An action on two arms is skipped because of one of them; the next action on the other arm still runs.
    check(
        &["bad left", "both left,right", "other right"],
        &[fails()],
        &[("bad", Failed), ("both", Skipped), ("other", Completed)],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_all_skips_the_rest_of_the_wave() {
    check(
        &["before left", "bad all", "after right", "unit k1/base"],
        &[("bad", Script::fails(10))],
        &[
            ("before", Completed),
            ("bad", Failed),
            ("after", Skipped),
            ("unit", Skipped),
        ],
    )
    .await;
    check(
        &["bad k1/all", "same k1/base", "other g1/base", "plain base"],
        &[("bad", Script::fails(10))],
        &[
            ("bad", Failed),
            ("same", Skipped),
            ("other", Completed),
            ("plain", Completed),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_all_is_skipped_when_any_subsystem_broke_before_it() {
    check(
        &["bad left", "everything all", "k1/all"],
        &[("bad", Script::fails(10))],
        &[("bad", Failed), ("everything", Skipped), ("k1/all", Completed)],
    )
    .await;
    check(
        &["bad k1/base", "unit k1/all", "other g1/all"],
        &[("bad", Script::fails(10))],
        &[("bad", Failed), ("unit", Skipped), ("other", Completed)],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_action_without_a_subsystem_skips_nothing_of_its_wave() {
    check(
        &["bad", "slow left", "everything all", "later < bad"],
        &[("bad", Script::fails(1)), ("slow", Script::takes(50))],
        &[
            ("bad", Failed),
            ("slow", Completed),
            ("everything", Completed),
            ("later", Skipped),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_timed_out_action_counts_as_one_that_failed() {
    let rig = Rig::new();
    rig.toolbox.tool(
        "t",
        actions(&["stuck left", "next left", "other right", "later < other"]),
    );
    rig.toolbox.script("stuck", Script::hangs());
    let report = rig.motion("t").report().await;
    let expected = [
        ("stuck", TimedOut),
        ("next", Skipped),
        ("other", Completed),
        ("later", Skipped),
    ];
    assert_eq!(outcomes(&report), expected.into());
    assert_eq!(report.outcome, CallOutcome::TimedOut);
    assert_eq!(rig.toolbox.started(), ["stuck", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_goes_away_fails_its_actions_and_says_what_happened() {
    let rig = Rig::new();
    rig.toolbox.tool("t", actions(&["a left", "b right"]));
    let crash = Script {
        then: Then::Crash,
        ..Script::takes(5)
    };
    rig.toolbox.script("a", crash);
    let report = rig.motion("t").report().await;
    assert_eq!(outcomes(&report), [("a", Failed), ("b", Completed)].into());
    assert_eq!(
        line(&report, "a").error.as_ref().unwrap().to_string(),
        "ToolboxCrashed: signal 11"
    );
}

#[tokio::test(start_paused = true)]
async fn a_toolbox_that_ends_a_run_by_itself_has_cancelled_it() {
    let rig = Rig::new();
    rig.toolbox.tool("t", actions(&["a left", "b < a"]));
    let gone = Script {
        then: Then::Ends,
        ..Script::takes(5)
    };
    rig.toolbox.script("a", gone);
    let report = rig.motion("t").report().await;
    assert_eq!(
        outcomes(&report),
        [("a", Outcome::Cancelled), ("b", Skipped)].into()
    );
    assert_eq!(report.outcome, CallOutcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn the_toolbox_concludes_every_report_and_else_the_engine_does() {
    let conclusion = |tool: Tool, fails: bool| async move {
        let rig = Rig::new();
        rig.toolbox.tool_with("t", tool);
        let script = if fails { Script::fails(1) } else { Script::takes(1) };
        rig.toolbox
            .script("a", script.clone().returns_if_it_completes(json!({"n": 1})));
        match rig.effect("t", Effect::Read).end().await {
            CallEnd::Ran {
                verdict: Verdict::Toolbox(content) | Verdict::Engine(content),
                ..
            } => content,
            CallEnd::Refused(refusal) => panic!("{refusal}"),
        }
    };
    let tool = |lines: &[&str], conclusion| Tool {
        plan: Some(actions(lines)),
        conclusion,
        ..Tool::default()
    };
    let own = Conclusion::Output(json!({"success": false}));
    assert_eq!(conclusion(tool(&["a"], Some(own.clone())), true).await, own);
    assert_eq!(conclusion(tool(&["a"], Some(own.clone())), false).await, own);
    assert_eq!(
        conclusion(tool(&["a"], None), false).await,
        Conclusion::Output(json!({"n": 1}))
    );
    assert_eq!(
        conclusion(tool(&["a", "b"], None), false).await,
        Conclusion::Output(json!({"a": {"n": 1}, "b": {}}))
    );
    let stuck = Conclusion::Error(Failure::new("MotorError", "it is stuck"));
    assert_eq!(conclusion(tool(&["b", "a", "c < a"], None), true).await, stuck);
    let slow = Tool {
        conclude_takes: std::time::Duration::from_secs(60),
        ..tool(&["a"], None)
    };
    let Conclusion::Error(failure) = conclusion(slow, false).await else {
        panic!("a conclusion that never comes is not a success");
    };
    assert_eq!(failure.kind, "TimeoutError");
}

#[tokio::test(start_paused = true)]
async fn content_of_completed_actions_comes_in_the_order_of_the_plan() {
    let rig = Rig::new();
    rig.toolbox.tool_with(
        "t",
        Tool {
            plan: Some(actions(&["b", "a", "slow", "plain"])),
            ..Tool::default()
        },
    );
    let shows = |ms, items: &[&str]| Script {
        then: Then::Show(json!({"n": 1}), items.iter().map(|item| json!(item)).collect()),
        ..Script::takes(ms)
    };
    rig.toolbox.script("a", shows(1, &["first of a", "second of a"]));
    rig.toolbox.script("b", shows(50, &["of b"]));
    let late = Script {
        takes: None,
        on_cancel: OnCancel::Ends(Duration::from_millis(1)),
        ..shows(1, &["never"])
    };
    rig.toolbox.script("slow", late);
    let all = [json!("of b"), json!("first of a"), json!("second of a")];
    for (asked, expected) in [(true, &all[..]), (false, &all[..0])] {
        let call = rig.spawn(CallRequest {
            effect: Effect::Read,
            content: asked,
            ..rig.request("t")
        });
        let CallEnd::Ran { report, content, .. } = call.end().await else {
            panic!("it ran");
        };
        assert_eq!(content, expected, "asked: {asked}");
        assert_eq!(line(&report, "a").output, Some(json!({"n": 1})), "{report:?}");
    }
}
