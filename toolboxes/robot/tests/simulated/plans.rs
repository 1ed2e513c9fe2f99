//! The graph of every tool, as it is planned: a change of a graph, a timeout or an id shows up here.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::calls::calls;
use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::Action;
use robot::robots::Robots;
use serde_json::{Value, json};

/// One line an action: wave, id, what it holds, params, timeout, what it waits for.
fn draw(actions: &[Action]) -> String {
    let mut waves: HashMap<&str, usize> = HashMap::new();
    let mut text = String::new();
    for action in actions {
        let before = action.dependencies.iter().map(|id| waves[id.as_str()]);
        let wave = 1 + before.max().unwrap_or(0);
        let id = action.id.as_deref().unwrap();
        assert!(waves.insert(id, wave).is_none(), "{id} twice");
        let named = if id.split([':', '#']).next() == Some(&action.name) {
            String::new()
        } else {
            format!(" = {}", action.name)
        };
        let effect = action
            .effect
            .map(|effect| format!(" {effect}"))
            .unwrap_or_default();
        writeln!(
            text,
            "  {wave} {id}{named}@{} {} {} ms{effect}",
            action.subsystems.join("+"),
            Value::Object(action.params.clone()),
            action.timeout_ms.unwrap(),
        )
        .unwrap();
    }
    text
}

/// A robot that remembers the place of the calls.
fn knowing_a_place() -> (Harness, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let robot = Harness::open::<Robots>(json!({"data_dir": folder.path()})).unwrap();
    let done = robot
        .invoke("remember_place", json!({"place": "kitchen"}))
        .unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    (robot, folder)
}

#[test]
fn every_plan_is_the_one_of_the_catalogue() {
    let (robot, _folder) = knowing_a_place();
    let mut text = String::new();
    for (tool, args) in calls() {
        let actions = robot
            .plan(tool, args.clone())
            .unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
        write!(text, "{tool} {args}\n{}", draw(&actions.unwrap())).unwrap();
    }
    insta::assert_snapshot!("plans", text);
}

#[test]
fn picking_has_six_waves() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let actions = robot
        .plan("pick_object", json!({"object": "cup"}))
        .unwrap()
        .unwrap();
    let names: Vec<&str> = actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "look_at",
            "move_to_position",
            "gripper",
            "approach",
            "grasp",
            "lift"
        ]
    );
    for pair in actions.windows(2) {
        assert_eq!(pair[1].dependencies, [pair[0].id.clone().unwrap()]);
    }
}

#[test]
fn the_same_call_gives_the_same_plan() {
    let (robot, _folder) = knowing_a_place();
    for (tool, args) in calls() {
        let plan = || robot.plan(tool, args.clone()).unwrap();
        assert_eq!(plan(), plan(), "{tool} {args}");
    }
}

/// The toolbox checks numbers that the service lets through.
#[test]
fn numbers_have_ranges() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let check = |tool: &str, args: Value, expected: &str| {
        let error = robot
            .plan(tool, args.clone())
            .expect_err(&format!("{tool} {args}"));
        let text = error.failure.to_string();
        assert!(text.contains(expected), "{tool} {args}: {text}");
    };
    check(
        "move_base",
        json!({"direction": "left", "distance": 2.01}),
        "distance: expected 0.01 to 2, got 2.01",
    );
    check(
        "move_base",
        json!({"direction": "left", "distance": 0}),
        "distance",
    );
    check(
        "walk",
        json!({"duration": 31}),
        "duration: expected 0.1 to 30, got 31",
    );
    check("walk", json!({"speed": 1.5}), "speed: expected 0.1 to 1, got 1.5");
    check(
        "spin",
        json!({"direction": "cw", "degrees": 721}),
        "degrees: expected 1 to 720, got 721",
    );
    check("spin", json!({"direction": "cw", "degrees": -90}), "degrees");
    check("dance", json!({"duration": 0}), "duration");
    check(
        "test_motor",
        json!({"bus": "left", "motor_id": 3, "angle": -31}),
        "angle: expected -30 to 30, got -31",
    );
    check(
        "test_motor",
        json!({"bus": "left", "motor_id": 11}),
        "motor_id: expected 1 to 10, got 11",
    );
    check(
        "recover_servo",
        json!({"bus": "left", "motor_id": 12}),
        "motor_id",
    );
    check(
        "set_motor_id",
        json!({"bus": "left", "current_id": 1, "new_id": 254}),
        "new_id",
    );
    check("lift", json!({"action": "up", "distance_mm": 301}), "distance_mm");
    check(
        "hitch",
        json!({"action": "close", "grip_percent": 101}),
        "grip_percent",
    );
    check(
        "move_arm",
        json!({"arm": "left", "position": "home", "speed": 0.05}),
        "speed",
    );
    check(
        "move_arm",
        json!({"arm": "left", "position": "[1, x]"}),
        "expected a pose or [degrees, ...]",
    );
    check(
        "move_arm",
        json!({"arm": "left", "position": "hom"}),
        "did you mean home? Known are",
    );
    check("go_to_pose", json!({"pose": "moonwalk"}), "no pose \"moonwalk\"");
    check(
        "alert_hazard",
        json!({"hazard_type": "fire", "bearing_degrees": 400}),
        "bearing_degrees",
    );
    check(
        "save_config",
        json!({"name": "../etc/passwd"}),
        "letters, digits, _ and -",
    );
    check(
        "look_at",
        json!({"target": ""}),
        "target: expected 1 to 200 characters",
    );
    check(
        "enable_degraded_mode",
        json!({"missing_servos": ["left:99"]}),
        "expected a servo of this robot",
    );
    check("turn", json!({"target": "-361"}), "target: expected -360 to 360");
    check("wave", json!({"arm": "middle"}), "unknown variant `middle`");
    check("self_test", json!({"subsystems": []}), "expected at least one");
}

/// A plan never gives an action less than its own expectation, half as much again and three seconds.
#[test]
fn timeouts_follow_from_the_arguments() {
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    let timeout = |tool: &str, args: Value| robot.plan(tool, args).unwrap().unwrap()[0].timeout_ms.unwrap();
    // 2 m at 0.2 m/s.
    assert_eq!(
        timeout("move_base", json!({"direction": "forward", "distance": 2})),
        18_000
    );
    assert_eq!(
        timeout("move_base", json!({"direction": "forward", "distance": 0.1})),
        10_000
    );
    assert_eq!(timeout("walk", json!({"duration": 30})), 48_000);
    // The lift goes from end to end and back at half of its 50 mm/s, and home at 0.3 of it: at the least 34 s.
    assert!(timeout("calibrate_lift", json!({})) >= 54_000);
    let setup = robot.plan("setup_robot", json!({"steps": ["calibrate_lift"]}));
    assert!(setup.unwrap().unwrap()[0].timeout_ms.unwrap() >= 54_000);
    // 80 degrees at a tenth of 120 degrees/s; a motor by 30 degrees and back at 0.3 of it.
    let slow = Harness::open::<Robots>(json!({"robots": {"five": {"bounds": {"speed": 0.1}}}})).unwrap();
    let timeout_of = |tool: &str, args: Value, step: usize| {
        slow.plan(tool, args).unwrap().unwrap()[step].timeout_ms.unwrap()
    };
    let hand = timeout_of("gripper", json!({"action": "open"}), 0);
    assert!((13_000..=13_001).contains(&hand), "{hand}");
    for step in [2, 4] {
        assert_eq!(timeout_of("pick_object", json!({"object": "cup"}), step), hand);
    }
    let tested = timeout_of(
        "test_motor",
        json!({"bus": "right", "motor_id": 1, "angle": -30}),
        0,
    );
    assert!((28_000..=28_001).contains(&tested), "{tested}");
    // 720 degrees at 9 degrees/s.
    let spin = timeout("spin", json!({"direction": "cw", "degrees": 720, "speed": 0.1}));
    assert!((123_000..=123_001).contains(&spin), "{spin}");
}
