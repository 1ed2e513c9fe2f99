//! Places that a base remembers, and the way back to them.

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

fn opened(folder: &std::path::Path, robot: &Value) -> Harness {
    Harness::open::<Robots>(json!({"data_dir": folder, "robots": {"kiwi": robot}})).unwrap()
}

fn kiwi() -> Value {
    json!({"kind": "lekiwi", "simulated": true, "sim": {"time_scale": 500}})
}

fn done(robot: &Harness, tool: &str, args: Value) -> Value {
    let done = robot.invoke(tool, args).unwrap();
    assert_eq!(done["success"], true, "{tool}: {done:#}");
    done["data"].clone()
}

fn off(one: &Value, other: &Value) -> (f64, f64) {
    let way = |key: &str| one[key].as_f64().unwrap() - other[key].as_f64().unwrap();
    let turned = way("heading_degrees").rem_euclid(360.0);
    (way("x_m").hypot(way("y_m")), turned.min(360.0 - turned))
}

#[test]
fn a_base_comes_back_to_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let robot = opened(folder.path(), &kiwi());
    done(
        &robot,
        "move_base",
        json!({"direction": "forward", "distance": 0.5}),
    );
    let kitchen = done(&robot, "remember_place", json!({"place": " Kitchen "}))["position"].clone();
    assert_eq!(kitchen["frame"], "simulation", "{kitchen}");
    done(
        &robot,
        "move_base",
        json!({"direction": "rotate_left", "degrees": 100}),
    );
    done(
        &robot,
        "move_base",
        json!({"direction": "forward", "distance": 1.0}),
    );
    done(
        &robot,
        "move_base",
        json!({"direction": "right", "distance": 0.3}),
    );
    let there = done(&robot, "go_to_place", json!({"place": "KITCHEN"}))["position"].clone();
    let (metres, degrees) = off(&there, &kitchen);
    assert!(metres <= 0.03 && degrees <= 3.0, "{there} {kitchen}");
    // The base stands there, and does not only believe so.
    let truth = done(&robot, "motor_status", json!({"subsystem": "base"}))["odometry"].clone();
    let (metres, degrees) = off(&truth, &kitchen);
    assert!(metres <= 0.04 && degrees <= 4.0, "{truth} {kitchen}");
    // It is remembered beyond the end of the toolbox, for its owner alone.
    assert!(robot.close().is_clean());
    let file = folder.path().join("kiwi/places.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let robot = opened(folder.path(), &kiwi());
    let list = done(&robot, "list_places", json!({}));
    assert_eq!(
        (&list["places"][0]["place"], &list["places"][0]["reachable"]),
        (&json!("Kitchen"), &json!(true)),
        "{list:#}"
    );
    let moved = done(&robot, "remember_place", json!({"place": "kitchen"}));
    assert!(moved["replaced"].is_object(), "{moved:#}");
    done(&robot, "forget_place", json!({"place": "Kitchen"}));
    assert_eq!(done(&robot, "list_places", json!({}))["places"], json!([]));
}

#[test]
fn a_place_that_cannot_be_reached_says_why() {
    let spot = |frame: &str, x: f64| json!({"frame": frame, "x": x, "y": 0.0, "heading": 0.0});
    let kept = json!({"places": [
        {"name": "Kitchen", "spot": spot("simulation", 1.0)},
        {"name": "Moon", "spot": spot("simulation", 31.0)},
        {"name": "Yesterday", "spot": spot("start-5", 1.0)},
    ]});
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("kiwi")).unwrap();
    let file = folder.path().join("kiwi/places.json");
    std::fs::write(&file, kept.to_string()).unwrap();
    let robot = opened(folder.path(), &kiwi());
    for (place, why) in [
        (
            "kitchn",
            "no place kitchn: known are kitchen, moon, yesterday; did you mean kitchen?",
        ),
        (
            "yesterday",
            "was remembered in the frame start-5, and kiwi is in the frame simulation now",
        ),
        ("moon", "the way to the place: 31 is out of range"),
        ("", "expected 1 to"),
        ("a\nb", "expected 1 to"),
    ] {
        let answer = robot.invoke("go_to_place", json!({"place": place}));
        let message = match answer {
            Ok(done) => done["message"].to_string(),
            Err(failure) => failure.to_string(),
        };
        assert!(message.contains(why), "{place:?}: {message}");
    }
    // Its limits hold on the way, too.
    let mut near = kiwi();
    near["bounds"] = json!({"radius": 0.5});
    let robot = opened(folder.path(), &near);
    let done = robot.invoke("go_to_place", json!({"place": "kitchen"})).unwrap();
    assert_eq!(done["success"], false, "{done:#}");
    assert!(
        done["message"].to_string().contains("distance from the start"),
        "{done:#}"
    );
    // What cannot be read is neither used nor written over.
    for broken in [
        "{",
        "{\"places\": [], \"more\": 1}",
        &kept.to_string().replace("Moon", "KITCHEN"),
    ] {
        std::fs::write(&file, broken).unwrap();
        let robot = opened(folder.path(), &kiwi());
        for (tool, args) in [
            ("list_places", json!({})),
            ("remember_place", json!({"place": "here"})),
            ("forget_place", json!({"place": "kitchen"})),
        ] {
            let message = robot
                .invoke(tool, args)
                .map_or_else(|e| e.to_string(), |done| done["message"].to_string());
            assert!(
                message.contains("places.json") && message.contains("fix the file"),
                "{tool}: {message}"
            );
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
    }
}

#[test]
fn a_place_of_a_hand_is_one_of_that_arm_alone() {
    let folder = tempfile::tempdir().unwrap();
    let so101 = json!({"kind": "so101", "simulated": true, "sim": {"time_scale": 50}});
    let robot = opened(folder.path(), &so101);
    // Without power it sinks.
    done(&robot, "move_arm", json!({"arm": "right", "position": "home"}));
    done(&robot, "remember_place", json!({"place": "Tray"}));
    let list = done(&robot, "list_places", json!({}));
    assert_eq!(list["places"][0]["reachable"], true, "{list:#}");
    done(&robot, "move_arm", json!({"arm": "right", "position": "tray"}));
    assert!(robot.close().is_clean());
    let file = folder.path().join("kiwi/places.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let with = |key: &str, value: Value| {
        let mut changed = kept.clone();
        changed["places"][0]["hand"]["of"][key] = value;
        changed
    };
    let mut unknown = kept.clone();
    unknown["places"][0]["hand"].as_object_mut().unwrap().remove("of");
    for (kept, why) in [
        (unknown, "did not keep whose arm it was"),
        (
            with("simulated", json!(false)),
            "on the machine, and this is a simulator",
        ),
        (with("shape", json!("0")), "with another shape of right_arm"),
        (
            with("kind", json!("so100")),
            "of the kind so100, and this is so101",
        ),
    ] {
        std::fs::write(&file, kept.to_string()).unwrap();
        let robot = opened(folder.path(), &so101);
        let list = done(&robot, "list_places", json!({}));
        let place = &list["places"][0];
        assert!(
            place["reachable"] == false && place["reason"].to_string().contains(why),
            "{why}: {list:#}"
        );
        for (tool, args) in [
            ("move_arm", json!({"arm": "right", "position": "tray"})),
            ("pick_object", json!({"object": "tray", "hand": "right"})),
            ("place_object", json!({"location": "tray", "hand": "right"})),
        ] {
            let message = robot
                .invoke(tool, args)
                .map_or_else(|e| e.to_string(), |done| done["message"].to_string());
            assert!(
                message.contains(why) && message.contains("call remember_place again"),
                "{tool}: {message}"
            );
        }
    }
}

#[test]
fn a_robot_that_does_not_know_where_it_is_has_no_places() {
    for (kind, there) in [
        ("so101", false),
        ("booster-k1", false),
        ("lekiwi", true),
        ("johnny5", true),
    ] {
        let robot = json!({"kind": kind, "simulated": true});
        let harness = Harness::open::<Robots>(json!({"robots": {"it": robot}})).unwrap();
        let listed = harness.tools().iter().any(|tool| tool.name == "go_to_place");
        assert_eq!(listed, there, "{kind}");
        let placed = harness.tools().iter().any(|tool| tool.name == "place_object");
        assert_eq!(placed, kind != "booster-k1", "{kind}: place_object needs a hand");
    }
}
