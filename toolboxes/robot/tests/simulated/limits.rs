//! Limits and data files: what is beyond is refused with its name, when the toolbox is opened or before anything moves.

use std::fs;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

fn open(robot: Value) -> Harness {
    Harness::open::<Robots>(json!({"robots": {"five": robot}})).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(robot: Value) -> String {
    let opened = Harness::open::<Robots>(json!({"robots": {"five": robot}}));
    opened.err().expect("it opened").to_string()
}

/// A robot with this poses file.
fn with_poses(text: &str) -> (tempfile::TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("poses.toml");
    fs::write(&path, text).unwrap();
    (folder, json!({"poses": path, "sim": {"time_scale": 500}}))
}

#[test]
fn a_poses_file_extends_the_built_in_ones() {
    let (_folder, robot) = with_poses(
        r#"
        [poses]
        greet = { right_arm = [0, -60, 60, 60, 0, 0], gantry = [0, -10], lift = 200 }
        [places.mug]
        above = [10, -60, 90, 90, 0, 0]
        at = [10, -45, 70, 80, 0, 0]
        lifted = [10, -70, 80, 75, 0, 0]
        retracted = [0, -45, 90, 45, 0, 0]
        [keyframes]
        salute = [20, -70, 120, 30, 0, 0]
        [dances]
        groovy = { arms = ["salute", "swing_in"], head = [[0, 15]], speed = 0.6, hold = 0.2 }
        "#,
    );
    let robot = open(robot);
    let plan = robot
        .plan("go_to_pose", json!({"pose": "greet"}))
        .unwrap()
        .unwrap();
    let parts: Vec<&str> = plan.iter().map(|action| action.subsystems[0].as_str()).collect();
    assert_eq!(parts, ["right_arm", "gantry", "lift"]);
    // What names one arm is mirrored for the other.
    let output = robot
        .invoke("move_arm", json!({"arm": "left", "position": "greet"}))
        .unwrap();
    let positions = &output["data"]["positions"];
    for (joint, expected) in [
        ("base", 0.0),
        ("shoulder", -60.0),
        ("elbow", 60.0),
        ("gripper", 0.0),
    ] {
        let at = positions[joint].as_f64().unwrap();
        assert!((at - expected).abs() < 1.1, "{joint}: {output:#}");
    }
    let output = robot.invoke("dance", json!({"style": "groovy"})).unwrap();
    assert_eq!(output["success"], true, "{output:#}");
    // A taught place needs no note. The hand reaches it, and has nothing to put down.
    for (location, excuse) in [
        ("mug", None),
        ("shelf", Some("the place of shelf was not taught")),
    ] {
        let output = robot
            .invoke("place_object", json!({"location": location}))
            .unwrap();
        let notes = output["data"]["notes"].to_string();
        assert!(
            excuse.map_or(!notes.contains("taught"), |excuse| notes.contains(excuse)),
            "{output:#}"
        );
    }
}

#[test]
fn a_bad_pose_is_refused_when_it_is_loaded() {
    let check = |text: &str, expected: &str| {
        let (_folder, robot) = with_poses(text);
        let error = refused(robot);
        assert!(error.contains(expected), "{text}: {error}");
    };
    check(
        "[poses]\nbad = { left_arm = [0, -45, 181, 45, 0, 0] }",
        "bad: left_arm elbow: 181 is out of range, expected 0 to 180 degrees",
    );
    check(
        "[poses]\nbad = { gantry = [0, 46] }",
        "bad: gantry tilt: 46 is out of range, expected -45 to 45",
    );
    check(
        "[poses]\nbad = { lift = 301 }",
        "bad: lift: 301 is out of range, expected 0 to 300 mm",
    );
    check(
        "[poses]\nbad = { right_arm = [0, 0] }",
        "right_arm has 6 joints (base, shoulder, elbow,",
    );
    check("[poses]\nbad = { tail = [0] }", "unknown field `tail`");
    check(
        "[keyframes]\nup = [0, nan, 90, 45, 0, 0]",
        "right_arm shoulder: NaN is out of range",
    );
    check(
        "[dances]\nhappy = { arms = [\"moonwalk\"], speed = 0.5, hold = 0 }",
        "happy: no keyframe moonwalk: known are",
    );
    check(
        "[dances]\nhappy = { arms = [\"up\"], speed = 5, hold = 0 }",
        "expected a speed of 0.1 to 1.0",
    );
    check("[poses", "expected");
    check("[parts]\n", "to narrow limits use `bounds`");
    let error = refused(json!({"poses": "/does/not/exist.toml"}));
    assert!(error.contains("/does/not/exist.toml"), "{error}");
}

#[test]
fn bounds_narrow_and_never_widen() {
    let bounded = |bounds: Value| open(json!({"bounds": bounds, "sim": {"time_scale": 500}}));
    let message = |robot: &Harness, tool: &str, args: Value| match robot.invoke(tool, args) {
        Ok(output) => output["message"].as_str().unwrap().to_owned(),
        Err(error) => error.to_string(),
    };

    let robot = bounded(json!({"joints": {"left_arm": {"elbow": [0, 100]}}}));
    let args = json!({"arm": "left", "position": "[0, -45, 110, 45, 0, 0]"});
    assert_eq!(
        message(&robot, "move_arm", args.clone()),
        "ValueError: left_arm elbow: 110 is out of range, expected 0 to 100 degrees"
    );
    let listed = json!({"arm": "left", "position": [0, -45, 110, 45, 0, 0]});
    assert!(message(&robot, "move_arm", listed).contains("left_arm elbow: 110"));
    // Both arms: none of them sets out.
    let both = json!({"arm": "both", "position": "[0, -45, 110, 45, 0, 0]"});
    assert!(message(&robot, "move_arm", both).contains("left_arm elbow"));
    // A built-in pose beyond it is not there any more.
    assert!(
        message(
            &robot,
            "move_arm",
            json!({"arm": "left", "position": "wave_left"})
        )
        .contains("no pose")
    );

    let wider = bounded(json!({"joints": {"left_arm": {"elbow": [-100, 500]}}, "linear": 5.0}));
    assert!(
        message(
            &wider,
            "move_arm",
            json!({"arm": "left", "position": "[0, -45, 181, 45, 0, 0]"})
        )
        .contains("0 to 180")
    );
    let walked = message(&wider, "walk", json!({"speed": 1.0, "duration": 0.2}));
    assert!(
        walked.contains("1.00 m/s is too fast here: went at 0.26 m/s"),
        "{walked}"
    );

    let slow = bounded(json!({"linear": 0.1, "angular": 0.2}));
    assert!(message(&slow, "walk", json!({"duration": 0.2})).contains("went at 0.10 m/s"));
    // The time follows from the speed: 1 m at 0.1 m/s.
    let plan = slow
        .plan("move_base", json!({"direction": "forward", "distance": 1}))
        .unwrap()
        .unwrap();
    assert_eq!(plan[0].timeout_ms, Some(18_000));

    let near = bounded(json!({"radius": 1.0}));
    let step = |direction: &str| json!({"direction": direction, "distance": 0.8});
    assert!(message(&near, "move_base", step("forward")).starts_with("Completed move_base"));
    assert!(message(&near, "move_base", step("forward")).contains("distance from the start: 1."));
    assert!(message(&near, "move_base", step("left")).contains("distance from the start"));
    assert!(message(&near, "move_base", step("backward")).starts_with("Completed move_base"));
}

#[test]
fn a_hand_opens_no_further_than_its_joint() {
    let joints = json!({"right_arm": {"gripper": [10, 60]}});
    let robot = open(json!({"bounds": {"joints": joints}, "sim": {"time_scale": 500}}));
    for (action, angle) in [("open", 60.0), ("close", 10.0)] {
        let output = robot
            .invoke("gripper", json!({"arm": "right", "action": action}))
            .unwrap();
        assert_eq!(output["success"], true, "{output:#}");
        let args = json!({"subsystem": "right_arm", "motor_id": 6});
        let motor = robot.invoke("motor_status", args).unwrap();
        let at = motor["data"]["motors"]["right:6"]["position"].as_f64().unwrap();
        assert!((at - angle).abs() < 1.1, "{motor:#}");
    }
}

#[test]
fn a_configuration_that_makes_no_sense_says_why() {
    let check = |robot: Value, expected: &str| {
        let error = refused(robot.clone());
        assert!(error.contains(expected), "{robot}: {error}");
    };
    check(json!({"adapter": "r2d2"}), "unknown variant `r2d2`");
    check(
        json!({"bounds": {"joints": {"left_arm": {"knee": [0, 1]}}}}),
        "no such joint; known are base, shoulder",
    );
    check(json!({"bounds": {"joints": {"tail": {}}}}), "bounds.joints.tail");
    check(
        json!({"bounds": {"joints": {"left_arm": {"elbow": [170, 10]}}}}),
        "nothing is left of 0 to 180 degrees within 170 to 10",
    );
    for adapter in ["booster_k1", "unitree_g1"] {
        check(
            json!({"adapter": adapter, "bounds": {"radius": 3}}),
            "robots.five.bounds.radius: this robot does not know where its base is",
        );
    }
    check(
        json!({"adapter": "johnny5", "johnny5": {"motors": {"lift.lift": {"zero_step": 4095, "min": -200, "max": -10}}}}),
        "channels.motors: lift.lift: nothing is left of 0 to 300 within -200 to -10",
    );
    check(json!({"bounds": {"speed": 0}}), "bounds.speed: 0 is out of range");
    check(json!({"sim": {"time_scale": 0}}), "time_scale: 0 is out of range");
    check(
        json!({"sim": {"trace": "/does/not/exist/trace"}}),
        "robots.five.sim.trace",
    );
    let opened = Harness::open::<Robots>(json!({"robots": {"a/b": {}}}));
    assert!(
        opened
            .err()
            .unwrap()
            .to_string()
            .contains("cannot be the name of a robot")
    );
}

#[test]
fn faults_are_told_and_stay_where_they_are() {
    let robot = open(
        json!({"sim": {"time_scale": 500, "faults": [{"missing": "left:3"}, {"hot": "right:2"}, {"stuck": "base"}]}}),
    );
    let output = |tool: &str, args: Value| robot.invoke(tool, args).unwrap();
    let check = |output: &Value, expected: &str| {
        let message = output["message"].as_str().unwrap();
        assert!(message.contains(expected), "{output:#}");
    };
    check(
        &output("wave", json!({"arm": "left"})),
        "servo 3 on bus left does not answer",
    );
    check(&output("walk", json!({"duration": 1})), "the base does not move");
    // The other arm waves.
    let both = output("wave", json!({"arm": "both"}));
    assert_eq!(both["success"], false);
    assert_eq!(both["data"]["failed"][0]["action"], "wave:left_arm", "{both:#}");
    let health = output("servo_health_report", json!({}));
    let concerns = health["data"]["results"].to_string();
    assert!(
        concerns.contains("left:3 (left_arm elbow) does not answer")
            && concerns.contains("right:2 (right_arm shoulder) is at 78"),
        "{concerns}"
    );
    let check_servos = output("check_servos", json!({"subsystem": "left_arm"}));
    assert_eq!(
        (
            &check_servos["success"],
            &check_servos["data"]["answers"]["left:3"]
        ),
        (&json!(false), &json!(false)),
        "{check_servos:#}"
    );
    // Without it the arm goes on, and the joint stays.
    output("enable_degraded_mode", json!({"missing_servos": ["left:3"]}));
    let moved = output(
        "move_arm",
        json!({"arm": "left", "position": "[10, -45, 0, 45, 0, 0]"}),
    );
    assert_eq!(moved["success"], true, "{moved:#}");
    assert!(
        moved["data"]["positions"].get("elbow").is_none() && moved.to_string().contains("left out"),
        "{moved:#}"
    );
    output(
        "enable_degraded_mode",
        json!({"missing_servos": ["left:3"], "continue_anyway": false}),
    );
    check(
        &output("wave", json!({"arm": "left"})),
        "left_arm elbow (servo 3 on bus left) is missing",
    );
}

/// Each part is optional, but not all of them.
#[test]
fn a_call_that_did_nothing_is_no_success() {
    let stuck = json!([{"stuck": "left_arm"}, {"stuck": "right_arm"}, {"stuck": "gantry"}]);
    let robot = open(json!({"sim": {"time_scale": 500, "faults": stuck}}));
    let output = robot.invoke("express", json!({"emotion": "shy"})).unwrap();
    assert_eq!(output["success"], false, "{output:#}");
    let message = output["message"].as_str().unwrap();
    assert!(
        message
            .starts_with("express did nothing: left out arms_gesture:left_arm: five: left_arm base (servo 1 on bus left) is blocked"),
        "{message}"
    );

    let robot = open(json!({"sim": {"time_scale": 500, "faults": [{"stuck": "gantry"}]}}));
    let output = robot.invoke("express", json!({"emotion": "shy"})).unwrap();
    assert_eq!(output["success"], true, "{output:#}");
    let message = output["message"].as_str().unwrap();
    assert!(
        message.contains("left out head_gesture: five: gantry pan (servo 7 on bus right) is blocked"),
        "{message}"
    );
}

#[test]
fn opening_moves_nothing_and_powers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let robot = open(json!({"sim": {"trace": trace, "time_scale": 500}}));
    let torque = robot.invoke("check_torque", json!({"subsystem": "all"})).unwrap();
    let powered = torque["data"]["torque"]
        .as_object()
        .unwrap()
        .values()
        .any(|value| value == true);
    assert!(!powered, "{torque:#}");
    let lines = fs::read_to_string(&trace).unwrap();
    assert!(
        !lines.contains("\"move\"") && !lines.contains("\"drive\""),
        "{lines}"
    );
}

#[test]
fn a_stop_holds_until_it_is_reset_and_a_pressed_button_keeps_it() {
    let robot = open(json!({"sim": {"time_scale": 500}}));
    robot.halt(&["all"], true).unwrap();
    let output = robot.invoke("nod", json!({})).unwrap();
    assert_eq!(
        output["message"], "Robot is in emergency stop state. Reset required.",
        "{output:#}"
    );
    robot.resume().unwrap();
    assert_eq!(robot.invoke("nod", json!({})).unwrap()["success"], true);

    let pressed = open(json!({"sim": {"time_scale": 500, "faults": ["button"]}}));
    pressed.halt(&["all"], true).unwrap();
    let refusal = pressed.resume().unwrap_err();
    assert!(
        refusal.to_string().contains("button is still pressed"),
        "{refusal}"
    );
}

#[test]
fn pointing_at_one_person_is_rare() {
    let robot = open(json!({"sim": {"time_scale": 500}}));
    let point = |args: Value| robot.invoke("point_at_person", args);
    assert_eq!(point(json!({"name": "Ada"})).unwrap()["success"], true);
    let again = point(json!({"name": "ada", "context": "emphasis"}))
        .unwrap_err()
        .to_string();
    assert!(
        again.starts_with("RateLimited: five has pointed at ada"),
        "{again}"
    );
    let clear = point(json!({"name": "Ada", "context": "clarification"})).unwrap();
    assert_eq!(clear["success"], true, "{clear:#}");
    let unseen = point(json!({"name": "Zoe"})).unwrap();
    assert!(
        unseen["message"]
            .as_str()
            .unwrap()
            .contains("five does not know where Zoe is"),
        "{unseen:#}"
    );
}

/// Each of these is one robot's own mistake.
#[test]
fn a_mistake_in_one_robot_keeps_the_others_serving() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let angle = file(
        "angle.toml",
        "\n[poses]\ngood = { gantry = [0, 0] }\nbad = { gantry = [0, 46] }\n",
    );
    let table = file(
        "table.toml",
        "[poses.\"bad\"]\nleft_arm = [0, -45, 181, 45, 0, 0]\n",
    );
    let field = file("field.toml", "[poses]\n\nbad = { tail = [0] }\n");
    let broken = file("broken.toml", "[poses]\nbad = { gantry = [0, 4 }\n");
    let dance = file(
        "dance.toml",
        "# ours\n[dances]\nhappy = { arms = [\"moonwalk\"], speed = 0.5, hold = 0 }\n",
    );
    let missing = folder.path().join("missing.toml").display().to_string();
    for (wrong, expected) in [
        (
            json!({"poses": angle}),
            vec![
                "robots.bad: poses",
                "angle.toml, line 4: bad: gantry tilt: 46 is out of range, expected -45 to 45",
            ],
        ),
        (
            json!({"poses": table}),
            vec!["table.toml, line 1: bad: left_arm elbow: 181"],
        ),
        (
            json!({"poses": field}),
            vec!["field.toml, line 3: unknown field `tail`, expected one of"],
        ),
        (json!({"poses": broken}), vec!["broken.toml, line 2: "]),
        (
            json!({"poses": dance}),
            vec!["dance.toml, line 3: happy: no keyframe moonwalk: known are"],
        ),
        (json!({"poses": missing}), vec!["missing.toml: No such file"]),
        (
            json!({"bounds": {"joints": {"left_arm": {"knee": [0, 1]}}}}),
            vec!["no such joint; known are base, shoulder"],
        ),
        (
            json!({"bounds": {"speed": 0}}),
            vec!["bounds.speed: 0 is out of range"],
        ),
    ] {
        let robots = json!({"robots": {"good": {"sim": {"time_scale": 500}}, "bad": wrong}});
        let harness =
            Harness::open::<Robots>(robots.clone()).unwrap_or_else(|error| panic!("{robots}: {error}"));
        let done = harness.invoke("wave", json!({"robot": "good"})).unwrap();
        assert_eq!(done["success"], true, "{done:#}");
        for (tool, args) in [
            ("wave", json!({})),
            ("go_to_pose", json!({"pose": "home"})),
            ("gesture_while_speaking", json!({})),
            ("check_servos", json!({})),
            ("alert_hazard", json!({"hazard_type": "fire"})),
        ] {
            let mut args = args;
            args["robot"] = json!("bad");
            let message = match harness.invoke(tool, args) {
                Ok(output) => {
                    assert_eq!(output["success"], false, "{output:#}");
                    output["message"].to_string()
                }
                Err(error) => error.to_string(),
            };
            for part in &expected {
                assert!(message.contains(part), "{robots}: {tool}: {message}");
            }
            assert!(!message.contains('\n'), "{message}");
        }
        // `status` and `doctor` say what the toolbox said last of its backend.
        let notice = harness
            .events()
            .into_iter()
            .rev()
            .find(|event| event.kind == "backend");
        let notice = notice.and_then(|event| event.data).unwrap();
        assert_eq!(notice["state"], "lost", "{notice}");
        let reason = notice["reason"].as_str().unwrap();
        assert!(expected.iter().all(|part| reason.contains(part)), "{reason}");
        assert!(reason.contains("good (simulated)"), "{reason}");
        // A stop stops the one that is driven.
        harness.halt(&["all"], true).unwrap();
    }
}

/// A look and a lift go as far as they can; the result has what was asked and what was used.
#[test]
fn what_is_clamped_is_said_with_both_numbers() {
    let robot = open(json!({"sim": {"time_scale": 500}}));
    for (tool, args, argument, asked) in [
        (
            "look_at",
            json!({"bearing_degrees": 150}),
            "bearing_degrees",
            Some(150.0),
        ),
        (
            "look_at",
            json!({"bearing_degrees": -150}),
            "bearing_degrees",
            Some(-150.0),
        ),
        (
            "look_at",
            json!({"bearing_degrees": 0, "tilt_degrees": 90}),
            "tilt_degrees",
            Some(90.0),
        ),
        (
            "lift",
            json!({"action": "down", "distance_mm": 300}),
            "position_mm",
            None,
        ),
    ] {
        let output = robot.invoke(tool, args.clone()).unwrap();
        assert_eq!(output["success"], true, "{tool} {args}: {output:#}");
        let clamped = &output["data"]["clamped"][argument];
        let number = |key: &str| {
            let number = clamped[key].as_f64();
            number.unwrap_or_else(|| panic!("{tool} {args}: {output:#}"))
        };
        let (given, used): (f64, f64) = (number("asked"), number("used"));
        assert!(
            asked.is_none_or(|asked: f64| asked == given),
            "{tool} {args}: {output:#}"
        );
        assert!(
            used.abs() < given.abs() && used * given >= 0.0,
            "{tool} {args}: {output:#}"
        );
    }
    let output = robot.invoke("look_at", json!({"bearing_degrees": 10})).unwrap();
    assert_eq!(output["data"]["clamped"], Value::Null, "{output:#}");
}
