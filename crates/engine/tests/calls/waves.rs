//! Waves: which actions run together, which ones wait, and which plans are refused before anything runs.

use std::time::Duration;

use ovos_toolbox_wire::{Action, CallOutcome, Effect, Outcome};
use ovos_tools_engine::{Defaults, Plan, PlanError, Refusal};
use serde_json::json;

use crate::memory_toolbox::Event;
use crate::rig::{Rig, outcomes};
use crate::script::{Script, Tool, actions};

fn planned(lines: &[&str]) -> Result<Plan, PlanError> {
    let defaults = Defaults {
        effect: Effect::Motion,
        timeout: Duration::from_secs(10),
    };
    Plan::new(actions(lines), defaults)
}

fn waves(plan: &Plan) -> Vec<Vec<&str>> {
    let id = |&index: &usize| plan.actions[index].id.as_str();
    plan.waves
        .iter()
        .map(|wave| wave.iter().map(id).collect())
        .collect()
}

#[test]
fn an_action_is_one_wave_after_the_last_of_its_dependencies() {
    let check = |lines: &[&str], expected: &[&[&str]]| {
        assert_eq!(waves(&planned(lines).unwrap()), expected, "{lines:?}");
    };
    check(&["a"], &[&["a"]]);
    check(&["c", "b", "a"], &[&["c", "b", "a"]]);
    check(&["a < b", "b"], &[&["b"], &["a"]]);
    check(
        &["a", "b < a", "c < a", "d < b,c", "e < a,d"],
        &[&["a"], &["b", "c"], &["d"], &["e"]],
    );
    // Two paths of different length: the longer one decides the wave.
    check(
        &["a", "b < a", "c < b", "d < a,c"],
        &[&["a"], &["b"], &["c"], &["d"]],
    );
    // The same dependency twice, by its id and by its name.
    check(&["1=a", "b < 1,a,a"], &[&["1"], &["b"]]);
    // A name means every action that has it, an id means one.
    check(
        &[
            "calibrate left",
            "calibrate right",
            "both < calibrate",
            "one < calibrate:left",
        ],
        &[&["calibrate:left", "calibrate:right"], &["both", "one"]],
    );
    check(
        &[
            "scan",
            "calibrate left",
            "calibrate right < scan",
            "both < calibrate",
        ],
        &[&["scan", "calibrate:left"], &["calibrate:right"], &["both"]],
    );
    check(
        &["wave k1/left", "wave g1/left"],
        &[&["wave:k1/left", "wave:g1/left"]],
    );
    check(&["x a,b", "x c"], &[&["x:a+b", "x:c"]]);
}

#[test]
fn a_plan_that_cannot_run_is_refused_and_says_why() {
    let check = |lines: &[&str], expected: &str| {
        let error = planned(lines).expect_err(&format!("{lines:?} was accepted"));
        assert_eq!(error.to_string(), expected, "{lines:?}");
    };
    check(
        &[],
        "the plan has no action: a toolbox returns at least one, or no plan at all",
    );
    check(
        &["a < b", "c"],
        "action `a` depends on `b`, which is neither an id nor a name of this plan; it has: a, c",
    );
    check(&["a < a"], "the dependencies form a cycle: a -> a");
    check(
        &["start", "a < c,start", "b < a", "c < b"],
        "the dependencies form a cycle: b -> c -> a -> b",
    );
    check(
        &["x left", "x right < x"],
        "the dependencies form a cycle: x:right -> x:right",
    );
    check(
        &["1=a", "1=b"],
        "actions number 1 and 2 both have the id `1`: ids are unique in a plan",
    );
    check(
        &["a left", "a left"],
        "actions number 1 and 2 both have the id `a:left`: ids are unique in a plan",
    );
    check(&["b", "=a"], "action number 2 has no name");
}

#[test]
fn an_action_does_not_do_more_to_the_world_than_its_tool_declares() {
    use Effect::{Motion, Read, Safe, Stop, Write};
    let check = |tool: Effect, action: Effect, allowed: bool| {
        let actions = vec![Action {
            effect: Some(action),
            ..Action::named("a")
        }];
        let timeout = Duration::from_secs(1);
        let plan = Plan::new(
            actions,
            Defaults {
                effect: tool,
                timeout,
            },
        );
        assert_eq!(
            plan.is_ok(),
            allowed,
            "a {action} action in a {tool} tool: {plan:?}"
        );
    };
    for (tool, allowed) in [
        (Read, &[Read][..]),
        (Write, &[Read, Write]),
        (Motion, &[Read, Write, Motion, Safe]),
    ] {
        for action in [Read, Write, Motion, Safe, Stop] {
            check(tool, action, allowed.contains(&action));
        }
    }
}

#[test]
fn inside_a_wave_only_actions_on_one_subsystem_wait_for_each_other() {
    // By action: the actions of its wave that must end first, directly or through others.
    let check = |lines: &[&str], expected: &[&str]| {
        let plan = planned(lines).unwrap();
        for (action, expected) in plan.actions.iter().zip(expected) {
            let mut before: Vec<usize> = action.after.clone();
            let mut next = 0;
            while next < before.len() {
                before.extend(&plan.actions[before[next]].after);
                next += 1;
            }
            before.sort_unstable();
            before.dedup();
            let before: Vec<_> = before.iter().map(|&b| plan.actions[b].id.as_str()).collect();
            assert_eq!(before.join(" "), *expected, "before `{}` in {lines:?}", action.id);
        }
    };
    check(
        &["a left", "b right", "c left", "d left,right", "e right"],
        &["", "", "a", "a b c", "a b c d"],
    );
    check(
        &["a left", "b all", "c right", "d k1/base", "e"],
        &["", "a", "a b", "a b", ""],
    );
    check(
        &["a k1/base", "b g1/base", "c k1/all", "d k1/arm", "e base"],
        &["", "", "a", "a c", ""],
    );
    check(
        &["a k1/all", "b k1/all", "c all", "d k1/all"],
        &["", "a", "a b", "a b c"],
    );
    check(&["a", "b", "c"], &["", "", ""]);
}

#[test]
fn the_bound_of_a_plan_is_the_longest_chain_of_each_wave() {
    let check = |lines: &[&str], seconds: u64| {
        assert_eq!(
            planned(lines).unwrap().bound(),
            Duration::from_secs(seconds),
            "{lines:?}"
        );
    };
    check(&["a"], 10);
    check(&["a left", "b right", "c left"], 20);
    check(&["a left", "b right", "c left < a"], 20);
    check(&["a left", "b all", "c right"], 30);
}

#[tokio::test(start_paused = true)]
async fn a_wave_starts_when_the_one_before_has_ended() {
    let rig = Rig::new();
    rig.toolbox
        .tool("t", actions(&["a left", "b right", "c left < b", "d right < b"]));
    rig.toolbox.script("a", Script::takes(5000));
    rig.toolbox.script("b", Script::takes(10));
    let report = rig.motion("t").report().await;
    assert_eq!(report.outcome, CallOutcome::Completed);
    let ended = rig.toolbox.place(&Event::Ended { action: "a".into() });
    for action in ["c", "d"] {
        let call = "call-1".into();
        let started = rig.toolbox.place(&Event::Started {
            call,
            action: action.into(),
        });
        assert!(started > ended, "{action} did not wait for the whole wave");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_common_subsystem_run_at_the_same_time() {
    let rig = Rig::new();
    rig.toolbox
        .tool("t", actions(&["a left", "b right", "c", "d left"]));
    let start = tokio::time::Instant::now();
    let report = rig.motion("t").report().await;
    assert_eq!(report.outcome, CallOutcome::Completed);
    assert_eq!(
        start.elapsed().as_millis(),
        200,
        "100 ms each, and only `d` waits for `a`"
    );
    assert_eq!(rig.toolbox.started(), ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn an_action_receives_the_outputs_of_its_dependencies_by_id() {
    let rig = Rig::new();
    rig.toolbox
        .tool("t", actions(&["look l", "look r", "scan", "move < look"]));
    rig.toolbox
        .script("look:l", Script::takes(1).returns(json!({"x": 1})));
    rig.toolbox
        .script("look:r", Script::takes(1).returns(json!("far")));
    rig.motion("t").report().await;
    let starts = rig.toolbox.starts();
    let start = starts.iter().find(|start| start.action.id == "move").unwrap();
    assert_eq!(
        serde_json::Value::from(start.inputs.clone()),
        json!({"look:l": {"x": 1}, "look:r": "far"})
    );
    assert_eq!((start.call.tool.as_str(), start.call.deadline_ms), ("t", 10_000));
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_a_plan_is_one_action_that_holds_everything_when_it_moves() {
    for (effect, subsystems) in [
        (Effect::Motion, vec!["all".to_owned()]),
        (Effect::Read, Vec::new()),
    ] {
        let rig = Rig::new();
        let report = rig.effect("wave", effect).report().await;
        assert_eq!(outcomes(&report), [("wave", Outcome::Completed)].into());
        assert_eq!(report.actions[0].subsystems, subsystems, "{effect}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_when_planning_fails() {
    let rig = Rig::new();
    rig.toolbox.tool("cyclic", actions(&["a < b", "b < a"]));
    let refuses = Tool {
        plan_fails: true,
        ..Tool::default()
    };
    rig.toolbox.tool_with("refuses", refuses);
    let hangs = Tool {
        plan_takes: Duration::from_secs(60),
        ..Tool::default()
    };
    rig.toolbox.tool_with("hangs", hangs);
    assert!(matches!(
        rig.motion("cyclic").refusal().await,
        Refusal::Plan(PlanError::Cycle { .. })
    ));
    assert!(matches!(
        rig.motion("refuses").refusal().await,
        Refusal::PlanFailed(_)
    ));
    let start = tokio::time::Instant::now();
    assert!(matches!(
        rig.motion("hangs").refusal().await,
        Refusal::PlanTimeout { .. }
    ));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    assert!(rig.toolbox.started().is_empty());
    assert_eq!(rig.engine.calls_in_flight(), 0);
}
