//! Turns and bearings on the simulator: positive is left, counter-clockwise, in arguments and in results.

use std::time::{Duration, Instant};

use ovos_toolbox_sdk::testing::Harness;
use ovos_toolbox_sdk::wire::Audience;
use robot::robots::Robots;
use serde_json::{Value, json};

fn robot() -> Harness {
    Harness::open::<Robots>(
        json!({"robots": {"five": {"sim": {"time_scale": 500}}}, "recognition_timeout_ms": 100}),
    )
    .unwrap()
}

fn done(robot: &Harness, tool: &str, args: Value) -> Value {
    let output = robot
        .invoke(tool, args.clone())
        .unwrap_or_else(|error| panic!("{tool} {args}: {error}"));
    assert_eq!(output["success"], true, "{tool} {args}: {output:#}");
    output
}

/// The heading that the base has measured, in degrees.
fn heading(robot: &Harness) -> f64 {
    let status = done(robot, "motor_status", json!({"subsystem": "base"}));
    let found = found(&status, "heading_degrees").and_then(Value::as_f64).unwrap();
    assert!((-180.0..=180.0).contains(&found), "{found}");
    found
}

/// The value of a key, wherever it stands.
fn found<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Object(object) => object
            .get(key)
            .or_else(|| object.values().find_map(|value| found(value, key))),
        Value::Array(items) => items.iter().find_map(|value| found(value, key)),
        _ => None,
    }
}

fn near(found: f64, expected: f64) -> bool {
    let off = (found - expected).rem_euclid(360.0);
    off.min(360.0 - off) < 1.0
}

#[test]
fn the_heading_grows_by_a_turn_to_the_left() {
    let robot = robot();
    let mut before = heading(&robot);
    for (tool, args, turned) in [
        ("turn", json!({"target": 30}), 30.0),
        ("turn", json!({"target": -75.5}), -75.5),
        ("turn", json!({"target": "left"}), 90.0),
        ("turn", json!({"target": "right"}), -90.0),
        ("turn", json!({"target": 350}), 350.0),
        ("turn", json!({"target": -360}), 0.0),
        ("spin", json!({"direction": "ccw", "degrees": 40}), 40.0),
        ("spin", json!({"direction": "clockwise", "degrees": 411}), -411.0),
        (
            "move_base",
            json!({"direction": "rotate_left", "degrees": 20}),
            20.0,
        ),
        (
            "move_base",
            json!({"direction": "rotate_right", "degrees": 50}),
            -50.0,
        ),
        ("move_base", json!({"direction": "rotate_left"}), 30.0),
        ("walk", json!({"direction": "rotate_left", "duration": 1}), 28.6),
    ] {
        done(&robot, tool, args.clone());
        let after = heading(&robot);
        assert!(
            near(after - before, turned),
            "{tool} {args}: from {before} to {after}"
        );
        before = after;
    }
}

#[test]
fn a_person_on_the_left_has_a_positive_bearing_and_a_turn_by_it_faces_the_person() {
    let people = json!([
        {"name": "Ada", "bearing": -40.0}, {"name": "Bo", "bearing": 25.0, "speaking": true}, {"name": "Cy", "bearing": 170.0},
    ]);
    let sim = json!({"time_scale": 500, "people": people});
    let config = json!({"robots": {"five": {"sim": sim}}, "recognition_timeout_ms": 100});
    let robot = Harness::open::<Robots>(config).unwrap();
    let seen = |name: &str| -> f64 {
        let people = done(&robot, "get_visible_people", json!({}));
        assert!(found(&people, "angle").is_none(), "{people:#}");
        let people = found(&people, "people").unwrap().as_array().unwrap().clone();
        let person = people.iter().find(|person| person["name"] == name).unwrap();
        person["bearing_degrees"].as_f64().unwrap()
    };
    assert_eq!((seen("Ada"), seen("Bo"), seen("Cy")), (40.0, -25.0, -170.0));
    let speaker = done(&robot, "get_speaker_direction", json!({}));
    assert_eq!(
        *found(&speaker, "bearing_degrees").unwrap(),
        json!(-25.0),
        "{speaker:#}"
    );
    for name in ["Ada", "Cy", "Bo", "Ada"] {
        done(&robot, "turn", json!({"target": seen(name)}));
        assert!(near(seen(name), 0.0), "{name}: {}", seen(name));
    }
    for name in ["Bo", "Cy"] {
        done(&robot, "turn", json!({"target": name}));
        assert!(near(seen(name), 0.0), "{name}: {}", seen(name));
    }
}

/// The pan joint counts clockwise, as joints stay.
#[test]
fn a_look_to_the_left_is_positive() {
    let robot = robot();
    for (args, pan, tilt) in [
        (json!({"bearing_degrees": 30}), -30.0, 0.0),
        (json!({"bearing_degrees": -20, "tilt_degrees": 10}), 20.0, -10.0),
        (json!({"tilt_degrees": -15}), 0.0, 15.0),
        (json!({"target": "left"}), -45.0, 0.0),
        (json!({"target": "forward"}), 0.0, 0.0),
    ] {
        let looked = done(&robot, "look_at", args.clone());
        let positions = found(&looked, "positions").unwrap();
        for (joint, expected) in [("pan", pan), ("tilt", tilt)] {
            let at = positions[joint].as_f64().unwrap();
            assert!(near(at, expected), "{args}: {looked:#}");
        }
    }
    for (bearing, arm, side) in [(60.0, "left_arm", "left"), (-60.0, "right_arm", "right")] {
        let args = json!({"hazard_type": "fire", "bearing_degrees": bearing});
        let plan = robot.plan("alert_hazard", args.clone()).unwrap().unwrap();
        let point = plan.iter().find(|action| action.name == "point").unwrap();
        assert_eq!(point.subsystems, [arm], "{args}");
        let warned = done(&robot, "alert_hazard", args);
        assert!(
            warned.to_string().contains(&format!("on my {side}")),
            "{warned:#}"
        );
    }
}

#[test]
fn the_old_forms_are_refused_with_the_new_ones() {
    let robot = robot();
    for (tool, args, expected) in [
        (
            "look_at",
            json!({"target": -30}),
            "for -30 send bearing_degrees 30",
        ),
        (
            "look_at",
            json!({"target": "30"}),
            "for 30 send bearing_degrees -30",
        ),
        (
            "look_at",
            json!({"target": "-30,10"}),
            "for -30,10 send bearing_degrees 30, tilt_degrees -10",
        ),
        ("look_at", json!({}), "expected target or bearing_degrees"),
        (
            "look_at",
            json!({"target": "Ada", "bearing_degrees": 3}),
            "give one of them",
        ),
        (
            "alert_hazard",
            json!({"hazard_type": "fire", "direction_degrees": 20}),
            "for 20 send bearing_degrees -20",
        ),
        (
            "move_base",
            json!({"direction": "rotate_left", "distance": 0.5}),
            "0.5 rad is degrees 29",
        ),
        (
            "move_base",
            json!({"direction": "left", "degrees": 20}),
            "for left send distance, in metres",
        ),
        ("gripper", json!({"arm": "left"}), "missing field `action`"),
    ] {
        let refused = robot.plan(tool, args.clone()).unwrap_err().failure.to_string();
        assert!(refused.contains(expected), "{tool} {args}: {refused}");
    }
}

/// The tools that ask a recogniser are for people until one has answered; a robot looks for one at the start, and when one says
/// that it is there.
#[test]
fn recognition_tools_are_for_models_once_a_recogniser_has_answered() {
    let robot = robot();
    let audience = |robot: &Harness| {
        let tools = robot.tools().into_iter();
        let recognition = tools.filter(|tool| tool.category.as_deref() == Some("recognition"));
        let audiences: Vec<Audience> = recognition.map(|tool| tool.audience).collect();
        assert_eq!(audiences.len(), 12);
        audiences
    };
    assert!(
        audience(&robot)
            .iter()
            .all(|audience| *audience == Audience::Unready)
    );
    robot.respond("ovos.robot.recognise", |_| Some(Ok(json!({"people": []}))));
    robot.message("ovos.robot.recognise.ready", json!({}));
    let end = Instant::now() + Duration::from_secs(60);
    while !robot.events().iter().any(|event| event.kind == "tools_changed") {
        assert!(Instant::now() < end, "it has not looked for the recogniser");
        robot.deliver();
        std::thread::yield_now();
    }
    assert!(
        audience(&robot)
            .iter()
            .all(|audience| *audience == Audience::Model)
    );
}

/// What an owner does with a screwdriver or a setting is no tool for a model.
#[test]
fn the_workshop_and_the_settings_are_for_people() {
    let robot = robot();
    let settings = ["gesture_while_speaking", "enable_fire_detection", "forget_place"];
    for tool in robot.tools() {
        let category = tool.category.as_deref().unwrap();
        let is_workshop = ["lift_hitch", "diagnostics", "calibration"].contains(&category);
        let is_for_people = is_workshop || settings.contains(&tool.name.as_str());
        assert_eq!(tool.audience == Audience::Person, is_for_people, "{}", tool.name);
    }
}

#[test]
fn the_angle_of_a_wheel_is_that_of_its_turn_in_degrees() {
    let robot = robot();
    let mut angles = Vec::new();
    for _ in 0..4 {
        done(
            &robot,
            "move_base",
            json!({"direction": "forward", "distance": 0.13}),
        );
        let status = done(&robot, "motor_status", json!({"subsystem": "base"}));
        let motors = found(&status, "motors").and_then(Value::as_object).unwrap();
        angles.extend(motors.values().map(|motor| motor["position"].as_f64().unwrap()));
    }
    let within = |angle: &&f64| (0.0..360.0).contains(*angle);
    assert!(angles.iter().all(|angle| within(&angle)), "{angles:?}");
    // They turned, and not by steps.
    let widest = angles.iter().fold(0.0_f64, |most, angle| most.max(*angle));
    assert!(widest > 45.0, "{angles:?}");
}
