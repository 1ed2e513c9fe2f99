//! The robot toolbox behind the real service: every tool, recognition, and stops at any moment, on the simulated robot.
//!
//! The commands are read from the simulator's trace, which has what reached the servos with its simulated time.

use std::time::{Duration, Instant};

use crate::support::robot::{RobotScene, invoke, moves};
use crate::support::scene::Scene;
use crate::support::service::plugins_with;
use serde_json::{Value, json};

#[test]
fn every_tool_is_done_over_the_bus() {
    let mut scene = RobotScene::new(&json!({ "time_scale": 200 }));
    for (tool, args) in crate::robot::calls::calls() {
        // What writes into servos needs them without power.
        if ["recover_servo", "set_motor_id", "setup_robot"].contains(&tool) {
            let off = json!({ "subsystem": "all", "enable": false });
            let answer = invoke(&mut scene.client, "enable_torque", &off);
            assert_eq!(answer["result"]["success"], true, "{answer:#}");
        }
        let answer = invoke(&mut scene.client, tool, &args);
        let result = &answer["result"];
        assert_eq!(
            result["success"],
            true,
            "{tool} {args}: {answer:#}\n{}",
            scene.service.log()
        );
        assert_eq!(result["data"]["simulated"], true, "{tool}: {answer:#}");
        if tool == "set_motor_id" {
            // The robot has no servo of the other id.
            let back =
                json!({ "bus": args["bus"], "current_id": args["new_id"], "new_id": args["current_id"] });
            let answer = invoke(&mut scene.client, tool, &back);
            assert_eq!(answer["result"]["success"], true, "{answer:#}");
        }
    }
}

#[test]
fn a_plan_on_the_command_line_shows_the_six_waves_of_picking() {
    let scene = RobotScene::new(&json!({}));
    let url = scene.scene.url();
    let plan = scene
        .scene
        .ours("plan", &["--bus", &url, "plan", "pick_object", "object=cup"]);
    let text = plan.finish();
    let order = [
        "look_at",
        "move_to_position",
        "gripper",
        "approach",
        "grasp",
        "lift",
    ];
    let mut rest = text.as_str();
    for name in order {
        let at = rest
            .find(name)
            .unwrap_or_else(|| panic!("no {name} after the others in\n{text}"));
        rest = &rest[at..];
    }
    assert!(text.contains('6'), "{text}");
}

#[test]
fn a_failure_reports_the_actions_that_were_done_and_those_that_were_not() {
    let mut scene = RobotScene::new(&json!({ "time_scale": 200 }));
    let answer = invoke(&mut scene.client, "pick_object", &json!({ "object": "unicorn" }));
    let result = &answer["result"];
    assert_eq!(result["success"], false, "{answer:#}");
    let data = &result["data"];
    assert_eq!(
        data["completed"],
        json!(["look_at", "move_to_position", "gripper", "approach"]),
        "{answer:#}"
    );
    assert_eq!(data["failed"][0]["action"], "grasp", "{answer:#}");
    assert_eq!(data["skipped"], json!(["lift"]), "{answer:#}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("right_arm has closed on nothing"), "{message}");
}

/// A skill on the bus is asked before the simulator's people.
#[test]
fn people_are_recognised_by_the_service_that_answers_on_the_bus() {
    let mut scene = RobotScene::new(&json!({}));
    let mut skill = scene.another_client();
    let client = &mut scene.client;
    client.send(
        "ovos.tools.invoke",
        &json!({ "name": "get_visible_people", "args": { "include_unknown": false }, "call_id": "people" }),
    );
    let question = skill.until("the question", |frame| {
        (frame["type"] == "ovos.robot.recognise").then(|| frame.clone())
    });
    assert_eq!(question["data"]["tool"], "get_visible_people", "{question:#}");
    assert_eq!(question["data"]["args"], json!({ "include_unknown": false }));
    assert_eq!(question["data"]["robot"], "five");
    let answer = json!({
        "type": "ovos.robot.recognise.response",
        "data": { "people": [{ "name": "Alan" }] },
        "context": question["context"],
    });
    skill.send_text(&answer.to_string());
    let people = "people".to_owned();
    client.until_answered([&people]);
    let answer = client.only_answer("people");
    assert_eq!(
        answer["result"]["data"]["people"][0]["name"], "Alan",
        "{answer:#}"
    );
}

#[test]
fn without_a_service_that_recognises_people_it_says_so() {
    let port = json!({ "left": "/dev/does-not-exist-0", "right": "/dev/does-not-exist-1" });
    let robots = json!({ "real": { "adapter": "johnny5", "johnny5": { "ports": port } } });
    let mut scene = RobotScene::with_robots(&robots);
    let answer = invoke(&mut scene.client, "get_known_people", &json!({}));
    assert_eq!(answer["result"]["success"], false, "{answer:#}");
    assert_eq!(
        answer["result"]["message"], "Recognition handler not configured",
        "{answer:#}"
    );
    // A result that is not simulated is not marked as simulated.
    assert!(answer["result"]["data"].get("simulated").is_none(), "{answer:#}");
    let answer = invoke(&mut scene.client, "wave", &json!({}));
    let message = answer["result"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("real is not connected"), "{answer:#}");
}

/// The four calls that are stopped everywhere.
fn victims() -> [(&'static str, Value); 4] {
    [
        ("dance", json!({ "duration": 3 })),
        ("pick_object", json!({ "object": "cup" })),
        ("walk", json!({ "duration": 3 })),
        ("dock_charger", json!({})),
    ]
}

/// Simulated seconds are this much shorter.
const STOPPED_AT: f64 = 20.0;

#[test]
fn a_stop_before_a_call_keeps_it_from_moving() {
    let mut scene = RobotScene::new(&json!({ "time_scale": STOPPED_AT }));
    let hazard = (
        "alert_hazard",
        json!({ "hazard_type": "fire", "bearing_degrees": 40 }),
    );
    for (tool, args) in victims().into_iter().chain([hazard]) {
        let stop_id = scene.stop();
        let before = moves(&scene.trace());
        let answer = invoke(&mut scene.client, tool, &args);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains("emergency stop state"), "{tool}: {answer}");
        assert_eq!(moves(&scene.trace()), before, "{tool} moved while stopped");
        scene.resume(&stop_id);
    }
}

#[test]
fn a_stop_at_each_action_boundary_ends_the_motion() {
    let mut scene = RobotScene::new(&json!({ "time_scale": STOPPED_AT }));
    for (tool, args) in victims() {
        let mut boundary = 0;
        // Every action has two boundaries; the loop ends when a call ends before the next one.
        loop {
            let call_id = format!("{tool}-boundary-{boundary}");
            if !scene.call_until_boundary(&call_id, tool, &args, boundary) {
                break;
            }
            check_stop(&mut scene, &call_id);
            boundary += 1;
        }
        assert!(boundary >= 2, "{tool}: {boundary} boundaries");
    }
}

#[test]
fn a_stop_at_any_instant_ends_the_motion() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut scene = RobotScene::new(&json!({ "time_scale": STOPPED_AT }));
    for (tool, args) in victims() {
        let start = Instant::now();
        let answer = invoke(&mut scene.client, tool, &args);
        assert_eq!(answer["result"]["success"], true, "{answer:#}");
        let whole = start.elapsed();
        scene.come_home();
        let mut interrupted = 0;
        for nth in 0..20 {
            let call_id = format!("{tool}-instant-{nth}");
            let instant = whole.mul_f64(random.f64());
            scene.call(&call_id, tool, &args);
            // This is no wait for an event: the moment itself is tested.
            std::thread::park_timeout(instant);
            interrupted += u32::from(check_stop(&mut scene, &call_id));
        }
        assert!(
            interrupted >= 5,
            "{tool}: seed {seed}: only {interrupted} of 20 stops came in time to stop anything"
        );
    }
}

/// Stops, checks that nothing is commanded any more and that the machine comes to rest and stays so, and moves it home. True if the call was still
/// running.
#[track_caller]
fn check_stop(scene: &mut RobotScene, call_id: &str) -> bool {
    let stop_id = scene.stop();
    let call = call_id.to_owned();
    scene.client.until_answered([&call]);
    let trace = scene.trace();
    let halt = trace
        .iter()
        .rposition(|line| line["do"] == "halt" && line["emergency"] == true)
        .expect("an emergency halt");
    let moving = &trace[halt]["moving"];
    assert_eq!(*moving, json!([]), "{call_id}: moving after the stop");
    assert_eq!(
        moves(&trace[halt..]),
        0,
        "{call_id}: commanded after the stop: {:#?}",
        &trace[halt..]
    );
    // The simulated time of a busy machine goes on slowly, and a joint brakes for some of it.
    let late = Instant::now() + Duration::from_secs(2);
    let mut first = scene.pose();
    while first.iter().any(|motor| motor["moving"] == true) {
        assert!(Instant::now() < late, "{call_id}: {first:#?}");
        first = scene.pose();
    }
    // Many times the simulated 50 ms later, it has not moved.
    let end = Instant::now() + Duration::from_millis(20);
    while Instant::now() < end {
        assert_eq!(scene.pose(), first, "{call_id}: moved after it was at rest");
    }
    assert_eq!(moves(&scene.trace()[halt..]), 0, "{call_id}: commanded later");
    let interrupted = scene.client.only_answer(call_id)["result"]["success"] != true;
    scene.resume(&stop_id);
    scene.come_home();
    interrupted
}

/// What is wrong with a robot's file is said with file, line, key and the nearest name; a good one shows its tools.
#[test]
fn check_reads_the_file_of_a_robot() {
    let scene = Scene::new(&json!({}));
    let plugins = plugins_with("robot");
    scene.configure(&json!({ "plugins_dir": [plugins] }), &json!({}));
    let robots = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("toolboxes/robot/robots");
    let good = std::fs::read_to_string(robots.join("so101.toml")).unwrap();
    for (text, code, expected) in [
        (good.clone(), 0, vec!["move_arm", "calibrate_arm"]),
        (
            good.replacen("driver = \"feetech\"", "driver = \"fetech\"", 1),
            1,
            vec!["so101.toml, line", "did you mean \"feetech\"?"],
        ),
        (
            good.replacen("max_speed", "max_sped", 1),
            1,
            vec![
                "so101.toml, line",
                "unknown field `max_sped`",
                "did you mean `max_speed`?",
            ],
        ),
    ] {
        let file = scene.sandbox.path("so101.toml");
        std::fs::write(&file, text).unwrap();
        let checked = scene
            .sandbox
            .command(env!("CARGO_BIN_EXE_ovos-tools"))
            .arg("check")
            .arg(&file)
            .output()
            .unwrap();
        let output =
            String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(code), "{output}");
        for part in expected {
            assert!(output.contains(part), "{part}: {output}");
        }
        assert!(!output.contains("look_at"), "it has no head: {output}");
    }
}
