//! Robots in files of their owner.

use std::path::Path;

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use robot::shelf::kind_of;
use serde_json::json;

/// An arm of two joints and a gripper, on wheels, as its owner would write it down.
pub(crate) const OWN: &str = r#"
name = "my-arm"
driver = "feetech"
mirror = [-1, 1, 1]

[parts]
base = { kind = "3-wheel omni", max_linear = 0.2, max_lateral = 0.2, max_angular = 1, usual_linear = 0.1 }

[parts.left_arm]
joints = [
    { name = "yaw", min = -90, max = 90, max_speed = 60 },
    { name = "pitch", min = 0, max = 120, max_speed = 60 },
    { name = "gripper", min = 0, max = 50, max_speed = 60 },
]
gripper = { joint = 2, open = 50, closed = 0, max_speed = 60 }

[[channels.buses]]
name = "left"
port = "/dev/does-not-exist"
motors = [
    { id = 1, subsystem = "left_arm", name = "yaw" },
    { id = 2, subsystem = "left_arm", name = "pitch" },
    { id = 3, subsystem = "left_arm", name = "gripper" },
    { id = 4, subsystem = "base", name = "front", bearing = 0 },
    { id = 5, subsystem = "base", name = "left", bearing = 120 },
    { id = 6, subsystem = "base", name = "right", bearing = 240 },
]

[stop]
emergency = "hold"
order = [["base"], ["left_arm"]]

[poses]
home = { left_arm = [0, 60, 0] }
salute = { left_arm = [-45, 110, 0] }

[keyframes]
home = [0, 60, 0]

[channels.base]
wheel_radius = 0.05
base_radius = 0.125
"#;

pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn names(harness: &Harness) -> Vec<String> {
    harness.tools().into_iter().map(|tool| tool.name).collect()
}

#[test]
fn a_file_of_its_owner_makes_a_robot_with_the_tools_of_its_parts() {
    let folder = folder(&[("my-arm.toml", OWN)]);
    let own = json!({"kind": "my-arm", "simulated": true});
    let harness =
        Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": {"mine": own}})).unwrap();
    let tools = names(&harness);
    for (tool, there) in [
        ("move_arm", true),
        ("gripper", true),
        ("move_base", true),
        ("check_servos", true),
        ("calibrate_arm", true),
        ("look_at", false),
        ("lift", false),
        ("hitch", false),
        ("calibrate_gantry", false),
    ] {
        assert_eq!(tools.iter().any(|name| name == tool), there, "{tool}: {tools:?}");
    }
    let poses = harness
        .tools()
        .into_iter()
        .find(|tool| tool.name == "go_to_pose")
        .unwrap();
    assert_eq!(
        poses.argument_schema["properties"]["pose"]["enum"],
        json!(["home", "salute"])
    );
    let done = harness.invoke("go_to_pose", json!({"pose": "salute"})).unwrap();
    assert_eq!(
        (&done["success"], &done["data"]["simulated"]),
        (&json!(true), &json!(true)),
        "{done:#}"
    );
    let beyond = harness.invoke("move_arm", json!({"arm": "left", "position": [0, 121, 0]}));
    let beyond = beyond.unwrap_err().to_string();
    assert!(
        beyond.contains("left_arm pitch: 121 is out of range, expected 0 to 120"),
        "{beyond}"
    );
}

#[test]
fn every_robot_of_servos_can_be_rehearsed() {
    for (kind, has) in [
        ("so101", "move_arm"),
        ("lekiwi", "walk"),
        ("booster-k1", "nod"),
        ("unitree-g1", "wave"),
    ] {
        let robot = json!({"kind": kind, "simulated": true, "sim": {"time_scale": 50}});
        let harness = Harness::open::<Robots>(json!({"robots": {"it": robot}})).unwrap();
        assert!(names(&harness).iter().any(|name| name == has), "{kind}");
        let done = harness.invoke("go_to_pose", json!({"pose": "ready"})).unwrap();
        assert_eq!(
            (&done["success"], &done["data"]["simulated"]),
            (&json!(true), &json!(true)),
            "{kind}: {done:#}"
        );
    }
}

#[test]
fn every_base_can_be_rehearsed_with_its_own_tools() {
    for (kind, own, args) in [
        ("turtlebot3", "motor_power_on", json!({})),
        ("create3", "undock", json!({})),
        ("nav2-base", "navigate_to", json!({"x": 1.0, "y": 0.5})),
        ("unitree-go2", "stand_up", json!({})),
    ] {
        let robot = json!({"kind": kind, "simulated": true, "sim": {"time_scale": 50}});
        let harness = Harness::open::<Robots>(json!({"robots": {"it": robot}})).unwrap();
        let walk = json!({"direction": "forward", "speed": 0.2, "duration": 1.0});
        for (tool, args) in [("walk", walk), ("turn", json!({"target": 90})), (own, args)] {
            let done = harness.invoke(tool, args).unwrap();
            assert_eq!(
                (&done["success"], &done["data"]["simulated"]),
                (&json!(true), &json!(true)),
                "{kind} {tool}: {done:#}"
            );
            let notes = done["data"]["notes"].as_array().cloned().unwrap_or_default();
            let each_once = (1..notes.len()).all(|at| !notes[..at].contains(&notes[at]));
            assert!(each_once, "{kind} {tool}: {notes:?}");
        }
    }
}

#[test]
fn every_unverified_file_is_one_and_says_so() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("robots/unverified");
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let kind = kind_of(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(kind.description.contains("unverified"), "{}", file.display());
    }
}

/// The files on the page for owners are ones that work.
#[test]
fn the_files_on_the_page_are_robots() {
    let page = include_str!("../../../../docs/bring-your-own-robot.md");
    let blocks = page.split("```toml\n").skip(1);
    let texts: Vec<&str> = blocks.map(|block| block.split("```").next().unwrap()).collect();
    let [arm, base] = texts[..] else {
        panic!("{} files", texts.len());
    };
    let folder = folder(&[("my-arm.toml", arm), ("my-base.toml", base)]);
    let robots = json!({"base": {"kind": "my-base", "simulated": true, "sim": {"time_scale": 50}}});
    let harness = Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": robots})).unwrap();
    for (tool, args) in [
        ("move_base", json!({"direction": "forward", "distance": 0.2})),
        ("turn", json!({"target": 90})),
        ("battery_status", json!({})),
    ] {
        let done = harness.invoke(tool, args).unwrap();
        assert_eq!(done["success"], true, "{tool}: {done:#}");
    }
    let robots = json!({"arm": {"kind": "my-arm", "simulated": true}});
    let harness = Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": robots})).unwrap();
    for (tool, args) in [("check_servos", json!({})), ("go_to_pose", json!({"pose": "up"}))] {
        let done = harness.invoke(tool, args).unwrap();
        assert_eq!(done["success"], true, "{done:#}");
    }
    let beyond = harness.invoke("move_arm", json!({"arm": "right", "position": "[0, 121, 0]"}));
    assert!(beyond.is_err(), "{beyond:?}");
}

#[test]
fn a_hand_that_closes_on_another_thing_has_not_picked_the_one_that_was_asked_for() {
    let things = json!([
        {"name": "cup", "bearing": 10, "at": [0.24, -0.04, 0.04]},
        {"name": "ball", "bearing": -20, "at": [0.22, 0.1, 0.04]},
    ]);
    let robots =
        json!({"arm": {"kind": "so101", "simulated": true, "sim": {"time_scale": 50, "objects": things}}});
    let harness = Harness::open::<Robots>(json!({"robots": robots, "recognition_timeout_ms": 100})).unwrap();
    for (object, wrong, said) in [
        ("cup", true, "has closed on ball, not on cup"),
        ("ball", false, ""),
        // No thing has that name: it is that of the place.
        ("corner", false, "has closed on is called ball"),
    ] {
        let there = json!({"object": object, "x": 0.22, "y": 0.1, "z": 0.04});
        let picked = harness.invoke("pick_object", there).unwrap();
        assert!(
            picked["success"] == !wrong && picked.to_string().contains(said),
            "{object}: {picked:#}"
        );
        let opened = harness.invoke("gripper", json!({"arm": "right", "action": "open"}));
        assert_eq!(opened.unwrap()["success"], true);
    }
}

/// The owner's driver, over simulated servos: what a hand reaches for is in its way, and a stop stops.
#[test]
fn a_rehearsal_holds_things_drives_and_stops() {
    let robots = json!({"arm": {"kind": "so101", "simulated": true, "sim": {"time_scale": 50}}});
    let harness = Harness::open::<Robots>(json!({"robots": robots, "recognition_timeout_ms": 100})).unwrap();
    let picked = harness.invoke("pick_object", json!({"object": "cup"})).unwrap();
    assert_eq!(
        (&picked["success"], &picked["data"]["simulated"]),
        (&json!(true), &json!(true)),
        "{picked:#}"
    );
    let opened = harness
        .invoke("gripper", json!({"arm": "right", "action": "open"}))
        .unwrap();
    assert_eq!(opened["success"], true, "{opened:#}");
    for (object, why) in [
        (json!({"object": "unicorn"}), "does not know where unicorn is"),
        (
            json!({"object": "unicorn", "x": 0.2, "y": 0.12, "z": 0.05}),
            "closed on nothing",
        ),
    ] {
        let nothing = harness.invoke("pick_object", object).unwrap();
        assert_eq!(nothing["success"], false, "{nothing:#}");
        assert!(nothing["message"].to_string().contains(why), "{nothing:#}");
    }
    let people = harness.invoke("get_visible_people", json!({})).unwrap();
    assert_eq!(people["success"], true, "{people:#}");
    // Servos on a line, as the driver asks for them.
    let status = harness
        .invoke("motor_status", json!({"subsystem": "right_arm"}))
        .unwrap();
    assert!(status.to_string().contains("temperature"), "{status:#}");
    harness.halt(&["all"], true).unwrap();
    let torque = harness
        .invoke("check_torque", json!({"subsystem": "right_arm"}))
        .unwrap();
    assert!(
        torque.to_string().contains("false"),
        "its file says torque_off: {torque:#}"
    );
    let notices = harness
        .events()
        .into_iter()
        .filter(|event| event.kind == "backend");
    let states: Vec<String> = notices
        .filter_map(|event| Some(event.data?["state"].to_string()))
        .collect();
    assert!(states.iter().all(|state| state == "\"simulated\""), "{states:?}");

    let robots = json!({"kiwi": {"kind": "lekiwi", "simulated": true, "sim": {"time_scale": 50}}});
    let harness = Harness::open::<Robots>(json!({ "robots": robots })).unwrap();
    let driven = harness
        .invoke("move_base", json!({"direction": "forward", "distance": 0.1}))
        .unwrap();
    assert_eq!(
        (&driven["success"], &driven["data"]["simulated"]),
        (&json!(true), &json!(true)),
        "{driven:#}"
    );
    for (sim, expected) in [
        (json!({"time_scale": 0.5}), "sim.time_scale: 0.5 is out of range"),
        (
            json!({"faults": [{"missing": "right:30"}]}),
            "sim.faults: no servo right:30",
        ),
    ] {
        let robots = json!({"kiwi": {"kind": "lekiwi", "simulated": true, "sim": sim}});
        let refused = Harness::open::<Robots>(json!({ "robots": robots }))
            .err()
            .unwrap()
            .to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    for (fault, tool, args, expected) in [
        (
            json!({"missing": "right:3"}),
            "check_servos",
            json!({}),
            "right:3",
        ),
        (
            json!({"hot": "right:2"}),
            "go_to_pose",
            json!({"pose": "ready"}),
            "overheat",
        ),
        (
            json!({"stuck": "right_arm"}),
            "go_to_pose",
            json!({"pose": "ready"}),
            "is blocked",
        ),
    ] {
        let robots = json!({"arm": {"kind": "so101", "simulated": true, "sim": {"time_scale": 50, "faults": [fault]}}});
        let harness = Harness::open::<Robots>(json!({ "robots": robots })).unwrap();
        let done = harness.invoke(tool, args).unwrap();
        assert_eq!(done["success"], false, "{done:#}");
        assert!(done.to_string().contains(expected), "{expected}: {done:#}");
    }
}

/// The smallest PNG: one grey point.
const POINT: [u8; 67] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 58,
    126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 104, 0, 0, 0, 130, 0, 129, 119, 205, 114, 182,
    0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// The variable with the picture that another process of this test looks at.
const EYES: &str = "OVOS_TEST_EYES";

/// The robot of a file with a camera of this machine.
fn with_device(device: &str, pictures: &std::path::Path) -> serde_json::Value {
    let text = format!("{OWN}\n[cameras.wrist]\ndevice = {device:?}\n");
    let folder = folder(&[("my-arm.toml", &text)]);
    let own = json!({"kind": "my-arm", "simulated": true});
    let robot = Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": {"mine": own}}))
        .unwrap()
        .with_content_folder(pictures);
    robot.invoke("look", json!({})).unwrap()
}

/// Not a test: a process without GStreamer, for the test below.
#[test]
fn looks_without_gstreamer_where_asked_to() {
    if std::env::var_os(EYES).is_none() {
        return;
    }
    let pictures = tempfile::tempdir().unwrap();
    let blind = with_device("test", pictures.path());
    let message = blind["message"].as_str().unwrap();
    assert!(
        message.contains("gst-launch-1.0 cannot be started")
            && message.contains("install gstreamer1.0-tools"),
        "{blind:#}"
    );
}

#[test]
fn a_camera_of_this_machine_is_looked_through() {
    let pictures = tempfile::tempdir().unwrap();
    for (device, why) in [
        (
            "/dev/video-of-nobody",
            "/dev/video-of-nobody: No such file or directory",
        ),
        ("/dev/null", "/dev/null: "),
    ] {
        let blind = with_device(device, pictures.path());
        let message = blind["message"].as_str().unwrap();
        assert!(
            blind["success"] == false
                && message.contains("the camera wrist shows nothing")
                && message.contains(why),
            "{blind:#}"
        );
    }
    let without = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::looks_without_gstreamer_where_asked_to"])
        .env(EYES, "1")
        .env("PATH", pictures.path())
        .output()
        .unwrap();
    assert!(
        without.status.success(),
        "{}",
        String::from_utf8_lossy(&without.stdout)
    );

    if std::process::Command::new("gst-launch-1.0")
        .arg("--version")
        .output()
        .is_err()
    {
        skip::skip("gst-launch-1.0", "no picture of GStreamer is looked at");
        return;
    }
    let seen = with_device("test", pictures.path());
    assert_eq!(
        (&seen["success"], &seen["data"]["width"]),
        (&json!(true), &json!(320)),
        "{seen:#}"
    );
    assert!(seen["data"]["age_s"].is_number(), "{seen:#}");
}

#[test]
fn a_camera_shows_the_file_that_another_program_writes() {
    let pictures = tempfile::tempdir().unwrap();
    let file = pictures.path().join("desk.png");
    let text = format!("{OWN}\n[cameras.desk]\nfile = {file:?}\n");
    let folder = folder(&[("my-arm.toml", &text)]);
    let own = json!({"kind": "my-arm", "simulated": true});
    let robot = Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": {"mine": own}}))
        .unwrap()
        .with_content_folder(pictures.path());
    for (content, why) in [
        (None, "No such file"),
        (Some(&b"no picture"[..]), "cannot be read"),
    ] {
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let blind = robot.invoke("look", json!({})).unwrap();
        assert_eq!(blind["success"], false, "{blind:#}");
        let message = blind["message"].as_str().unwrap();
        assert!(
            message.contains("the camera desk shows nothing") && message.contains(why),
            "{message}"
        );
    }
    std::fs::write(&file, POINT).unwrap();
    let seen = robot.invoke("look", json!({"camera": "desk"})).unwrap();
    assert_eq!(
        (&seen["success"], &seen["data"]["width"]),
        (&json!(true), &json!(1)),
        "{seen:#}"
    );
    assert!(seen["data"]["age_s"].is_number(), "{seen:#}");
    let unknown = robot
        .invoke("look", json!({"camera": "dusk"}))
        .unwrap_err()
        .to_string();
    assert!(unknown.contains("did you mean desk?"), "{unknown}");
    // A time that is to come says nothing of the age.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    let written = std::fs::File::options().write(true).open(&file).unwrap();
    written.set_modified(later).unwrap();
    let seen = robot.invoke("look", json!({})).unwrap();
    assert!(
        seen["success"] == true
            && seen["data"].get("age_s").is_none()
            && seen["data"]["notes"].to_string().contains("in the future"),
        "{seen:#}"
    );
    // Neither what is no file nor what is too large holds it up.
    written.set_len((64 << 20) + 1).unwrap();
    for is_pipe in [false, true] {
        if is_pipe {
            std::fs::remove_file(&file).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
            assert!(made.success());
        }
        let blind = robot.invoke("look", json!({})).unwrap();
        assert!(
            blind["success"] == false
                && blind["message"]
                    .to_string()
                    .contains("expected a file of at most 64 MiB"),
            "{blind:#}"
        );
    }
    // A robot without one has no eyes.
    let blind = Harness::open::<Robots>(json!({})).unwrap();
    assert!(!names(&blind).iter().any(|name| name == "look"));
    for (camera, why) in [
        (
            "topic = \"/camera/image_raw\"",
            "cameras.desk.topic: this driver is in no graph of ROS",
        ),
        (
            "file = \"desk.png\"",
            "cameras.desk.file: desk.png is not an absolute path",
        ),
        ("", "cameras.desk: expected one of topic, file and device"),
        ("index = 0", "unknown field `index`"),
        (
            "device = \"video0\"",
            "cameras.desk.device: \"video0\" is not a device",
        ),
        (
            "device = \"/dev/video0 ! filesink location=x\"",
            "expected one such as \"/dev/video0\"",
        ),
    ] {
        let text = format!("{OWN}\n[cameras.desk]\n{camera}\n");
        let folder = self::folder(&[("my-arm.toml", &text)]);
        let refused = kind_of(&folder.path().join("my-arm.toml"))
            .err()
            .unwrap()
            .to_string();
        assert!(refused.contains(why), "{camera}: {refused}");
    }
}
