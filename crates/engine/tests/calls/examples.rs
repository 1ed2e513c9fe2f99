//! The examples in the published description of tool calls, with the waves that it states.

use ovos_toolbox_wire::CallOutcome;
use ovos_tools_engine::CallEnd;

use crate::memory_toolbox::Event;
use crate::rig::Rig;
use crate::script::actions;

/// Plans and runs the actions; the expected waves are lists of ids.
async fn check(tool: &str, lines: &[&str], waves: &[&[&str]]) {
    let rig = Rig::new();
    rig.toolbox.tool(tool, actions(lines));
    let plan = rig.engine.plan(&rig.lease(), &rig.request(tool)).await.unwrap();
    let id = |&index: &usize| plan.actions[index].id.as_str();
    let planned: Vec<Vec<_>> = plan
        .waves
        .iter()
        .map(|wave| wave.iter().map(id).collect())
        .collect();
    assert_eq!(planned, waves, "{tool}");

    let start = tokio::time::Instant::now();
    let report = rig.motion(tool).report().await;
    assert_eq!(report.outcome, CallOutcome::Completed, "{report:?}");
    assert_eq!(rig.toolbox.started(), waves.concat(), "{tool}");
    // Every action takes 100 ms, and none of these waves has two actions on one subsystem.
    assert_eq!(start.elapsed().as_millis(), 100 * waves.len() as u128, "{tool}");
}

#[tokio::test(start_paused = true)]
async fn pick_object_is_six_waves() {
    check(
        "pick_object",
        &[
            "look_at gantry",
            "move_to_position right_arm < look_at",
            "gripper right_arm < move_to_position",
            "approach right_arm < gripper",
            "grasp right_arm < approach",
            "lift right_arm < grasp",
        ],
        &[
            &["look_at"],
            &["move_to_position"],
            &["gripper"],
            &["approach"],
            &["grasp"],
            &["lift"],
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn setup_robot_is_scan_then_both_arms_then_gantry() {
    check(
        "setup_robot",
        &[
            "scan_motors all",
            "calibrate left_arm < scan_motors",
            "calibrate right_arm < scan_motors",
            "calibrate_gantry gantry < calibrate",
        ],
        &[
            &["scan_motors"],
            &["calibrate:left_arm", "calibrate:right_arm"],
            &["calibrate_gantry"],
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_two_armed_dance_is_one_wave() {
    check(
        "dance",
        &["dance_sequence left_arm", "dance_sequence right_arm"],
        &[&["dance_sequence:left_arm", "dance_sequence:right_arm"]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_waves_of_the_overview() {
    check(
        "overview",
        &[
            "look_at gantry",
            "open_gripper right_arm",
            "move_arm_to_object right_arm < look_at",
            "close_gripper right_arm < move_arm_to_object",
            "lift_object right_arm < close_gripper",
        ],
        &[
            &["look_at", "open_gripper"],
            &["move_arm_to_object"],
            &["close_gripper"],
            &["lift_object"],
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_was_judged_is_what_runs() {
    let rig = Rig::new();
    let (lease, request) = (rig.lease(), rig.request("t"));
    rig.toolbox.tool("t", actions(&["wave left_arm"]));
    let judged = rig.engine.plan(&lease, &request).await.unwrap();
    rig.toolbox.tool("t", actions(&["swing left_arm"]));
    for (plan, started) in [(Some(judged), "wave"), (None, "swing")] {
        let request = rig.request("t");
        let place = rig.engine.enter(&request).unwrap();
        let end = rig.engine.call_at(place, &lease, request, plan).await;
        assert!(matches!(end, CallEnd::Ran { .. }), "{end:?}");
        assert_eq!(rig.toolbox.started().last().unwrap(), started);
    }
    let planned = rig.toolbox.log();
    let planned = planned.iter().filter(|event| matches!(event, Event::Planned(_)));
    assert_eq!(planned.count(), 2, "the judged plan is not made again");
}
