//! Files that are wrong: what is said of them, and what goes on without them.

use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use robot::shelf::{Shelf, kind_of};
use serde_json::{Value, json};

use crate::files::{OWN, folder};

/// What is wrong with a file is said with the file, the key, what is accepted, and the nearest name.
#[test]
fn a_wrong_file_says_what_is_wrong() {
    let change = |from: &str, to: &str| {
        assert!(OWN.contains(from), "{from}");
        OWN.replacen(from, to, 1)
    };
    for (text, expected) in [
        (
            change("[parts.left_arm]", "[parts.left_hand]"),
            vec![
                "line 9",
                "unknown field `left_hand`",
                "`left_arm`",
                "did you mean `left_arm`?",
            ],
        ),
        (
            change("driver = \"feetech\"", "driver = \"fetech\""),
            vec![
                "line 3",
                "no driver \"fetech\", expected one of booster, dynamixel, feetech, ros, unitree",
                "did you mean \"feetech\"?",
            ],
        ),
        (
            change("driver = \"feetech\"\n", ""),
            vec!["driver: missing; expected one of booster, dynamixel, feetech, ros, unitree"],
        ),
        (
            change("name = \"my-arm\"", "name = \"other\""),
            vec!["line 2", "the file is called my-arm and the robot other"],
        ),
        (
            change("[channels.base]\nwheel_radius = 0.05\nbase_radius = 0.125\n", ""),
            vec![
                "channels.base: missing; expected wheel_radius",
                "in metres as measured",
            ],
        ),
        (
            change("wheel_radius = 0.05\n", ""),
            vec!["channels.base", "wheel_radius"],
        ),
        (
            change("port = ", "prt = "),
            vec!["channels.buses: unknown field `prt`", "did you mean `port`?"],
        ),
        (
            change("[stop]", "[stop]\nemergancy = \"hold\""),
            vec!["unknown field `emergancy`", "did you mean `emergency`?"],
        ),
        (
            change("emergency = \"hold\"", "emergency = \"damp\""),
            vec!["estop damp"],
        ),
        (
            change("[[\"base\"], [\"left_arm\"]]", "[[\"left_arm\"], [\"base\"]]"),
            vec!["stop.order: base has to be the first group"],
        ),
        (
            change("[[\"base\"], [\"left_arm\"]]", "[[\"gantry\"]]"),
            vec!["stop.order: the robot has no gantry; it has left_arm, base"],
        ),
        (
            change("[[\"base\"], [\"left_arm\"]]", "[[\"base\"]]"),
            vec!["stop.order: left_arm is left out"],
        ),
        (
            change(
                "[[\"base\"], [\"left_arm\"]]",
                "[[\"base\"], [\"left_arm\"], [\"left_arm\"]]",
            ),
            vec!["stop.order: left_arm is named twice"],
        ),
        (
            change("{ id = 2, subsystem = \"left_arm\", name = \"pitch\" },", ""),
            vec!["parts.left_arm: no motor moves the joint pitch; expected { id = 1,"],
        ),
        (
            change("name = \"pitch\" },", "name = \"pich\" },"),
            vec![
                "motor left_arm.pich: left_arm has no joint of that name",
                "did you mean pitch?",
            ],
        ),
        (
            change(
                "{ id = 2, subsystem = \"left_arm\"",
                "{ id = 2, subsystem = \"lift\"",
            ),
            vec!["motor lift.pitch: the robot has no lift; it has left_arm, base"],
        ),
        (
            change("name = \"front\", bearing = 0", "name = \"front\""),
            vec!["motor base.front: bearing is missing"],
        ),
        (
            change(
                "name = \"yaw\" },\n    { id = 2",
                "name = \"yaw\", bearing = 0 },\n    { id = 2",
            ),
            vec!["motor left_arm.yaw: bearing is for wheels"],
        ),
        (
            change("bearing = 240", "bearing = 120"),
            vec!["wheels at the bearings [0.0, 120.0, 120.0] cannot move the base"],
        ),
        (
            change(
                "{ id = 5, subsystem = \"base\", name = \"left\"",
                "{ id = 5, subsystem = \"base\", name = \"front\"",
            ),
            vec!["base.front: it is there twice"],
        ),
        (
            change("id = 6", "id = 0"),
            vec!["base right has id 0 on bus left, expected 1 to 253"],
        ),
        (
            change("id = 6", "id = 254"),
            vec!["has id 254 on bus left, expected 1 to 253"],
        ),
        (
            change("port = \"/dev/does-not-exist\"", "port = \"\""),
            vec!["bus left has no port"],
        ),
        (
            change(
                "[stop]",
                "[[channels.buses]]\nname = \"right\"\nport = \"/dev/does-not-exist\"\nmotors = []\n[stop]",
            ),
            vec!["left and right are both on /dev/does-not-exist"],
        ),
        (
            change(
                "[stop]",
                "[[channels.buses]]\nname = \"left\"\nport = \"/dev/b\"\nmotors = []\n[stop]",
            ),
            vec!["two buses have one name"],
        ),
        (
            change("mirror = [-1, 1, 1]", "mirror = [-1, 1]"),
            vec!["line 4", "mirror: expected 3 numbers"],
        ),
        (
            change("mirror = [-1, 1, 1]", "mirror = [-1, 1, 0.5]"),
            vec!["mirror: expected 1 or -1", "0.5"],
        ),
        (
            change("mirror = [-1, 1, 1]", "mirror = [-1, -1, 1]"),
            vec![
                "home: left_arm pitch: -60 is out of range",
                "each times its number of `mirror`",
            ],
        ),
        (
            change(
                "min = -90, max = 90, max_speed = 60 },\n    { name = \"pitch\", min = 0, max = 120, max_speed = 60 },\n    \
                 { name = \"gripper\", min = 0, max = 50,",
                "min = -1.57, max = 1.57, max_speed = 60 },\n    { name = \"pitch\", min = 0, max = 2.09, max_speed = 60 },\n    \
                 { name = \"gripper\", min = 0, max = 0.87,",
            ),
            vec![
                "parts.left_arm.joints: no joint turns further than 6.3",
                "expected degrees",
            ],
        ),
        (
            change("id = 6", "id = 300"),
            vec!["expected a whole number from 0 to 255"],
        ),
        (
            change(
                "home = { left_arm = [0, 60, 0] }",
                "hom = { left_arm = [0, 60, 0] }",
            ),
            vec!["poses: left_arm has no home", "is \"hom\" meant to be it?"],
        ),
        (
            change("[keyframes]\nhome", "[keyframes]\nhme"),
            vec!["keyframes.hme: nothing uses it", "did you mean home?"],
        ),
        (
            change(
                "[keyframes]",
                "[gestures]\nhapy = { arms = [\"home\"], speed = 1, hold = 0 }\n[keyframes]",
            ),
            vec!["gestures.hapy: nothing uses it", "did you mean happy?"],
        ),
        (
            change(
                "[keyframes]",
                "[gestures]\nhappy = { speed = 1, hold = 0 }\n[keyframes]",
            ),
            vec!["happy: it moves nothing"],
        ),
        (
            change("salute = { left_arm", "Home = { left_arm"),
            vec!["the same word as \"Home\""],
        ),
        (
            change("salute = { left_arm", "\" salute\" = { left_arm"),
            vec!["poses: \" salute\" cannot be a name"],
        ),
        (
            change("salute = { left_arm", "\"\" = { left_arm"),
            vec!["poses: \"\" cannot be a name"],
        ),
        (
            change("salute = { left_arm = [-45, 110, 0] }", "salute = {}"),
            vec!["salute: the pose moves nothing"],
        ),
        (
            change("salute = { left_arm = [-45", "salute = { letf_arm = [-45"),
            vec!["unknown field `letf_arm`", "did you mean `left_arm`?"],
        ),
        (
            change("salute = { left_arm = [-45", "salute = { left_arm = [nan"),
            vec!["salute: left_arm yaw: NaN is out of range"],
        ),
        (
            change("[keyframes]", "[keyframe]"),
            vec!["unknown field `keyframe`", "did you mean `keyframes`?"],
        ),
        (
            change(
                "home = [0, 60, 0]",
                "home = [0, 60, 0]\npoint = [0, 60, 0]\n[point]\njoint = 3\nper_degree = 1\nreach = 90",
            ),
            vec!["point.joint: 3 is no joint of left_arm", "expected 0 to 2"],
        ),
        (
            change(
                "home = [0, 60, 0]",
                "home = [0, 60, 0]\n[point]\njoint = 0\nper_degree = 1\nreach = 90",
            ),
            vec!["point: the keyframe `point` is missing"],
        ),
        (
            change(
                "home = [0, 60, 0]",
                "home = [0, 60, 0]\npoint = [0, 60, 0]\n[point]\njoint = 0\nper_degree = 0\nreach = 90",
            ),
            vec!["point.per_degree: 0 is out of range"],
        ),
        (
            change("min = 0, max = 120", "min = 120, max = 0"),
            vec!["parts.left_arm.joints.pitch: min 120 has to be below max 0"],
        ),
        (
            change("min = 0, max = 120", "min = nan, max = 120"),
            vec!["parts.left_arm.joints.pitch: min NaN"],
        ),
        (
            change("min = 0, max = 120", "min = 0, max = inf"),
            vec!["parts.left_arm.joints.pitch:", "finite"],
        ),
        (
            change(
                "max_speed = 60 },\n    { name = \"pitch\"",
                "max_speed = 0 },\n    { name = \"pitch\"",
            ),
            vec!["joints.yaw.max_speed: 0 is out of range"],
        ),
        (
            change("{ name = \"pitch\"", "{ name = \"yaw\""),
            vec!["parts.left_arm.joints.yaw: it is there twice"],
        ),
        (
            change("{ name = \"pitch\"", "{ name = \"\""),
            vec!["parts.left_arm.joints: \"\" cannot be a name"],
        ),
        (
            change("gripper = { joint = 2", "gripper = { joint = 3"),
            vec!["parts.left_arm.gripper.joint: 3 is no joint of the arm"],
        ),
        (
            change("gripper = { joint = 2, ", "gripper = { "),
            vec!["parts.left_arm.gripper"],
        ),
        (
            change("open = 50, closed = 0", "open = 51, closed = 0"),
            vec!["gripper.open: 51 is out of range, expected 0 to 50"],
        ),
        (
            change("open = 50, closed = 0", "open = 0, closed = 0"),
            vec!["open and closed are the same"],
        ),
        (
            change("usual_linear = 0.1", "usual_linear = 0.3"),
            vec!["parts.base.usual_linear: 0.3 is out of range"],
        ),
        (
            change("max_angular = 1,", "max_angular = -1,"),
            vec!["parts.base.max_angular: -1 is out of range"],
        ),
        (
            change("max_lateral = 0.2", "max_lateral = inf"),
            vec!["parts.base.max_lateral: inf is out of range"],
        ),
        (
            change(
                "[stop]",
                "[channels.motors]\n\"left_arm.pitch\" = { zero_step = 4096 }\n[stop]",
            ),
            vec!["left_arm.pitch: zero_step 4096 is out of range, expected 0 to 4095"],
        ),
        (
            change(
                "[stop]",
                "[channels.motors]\n\"base.front\" = { zero_step = 5 }\n[stop]",
            ),
            vec!["base.front: zero_step, min and max are for joints"],
        ),
        (
            change(
                "[stop]",
                "[channels.motors]\n\"left_arm.pitch\" = { min = 90, max = 10 }\n[stop]",
            ),
            vec!["expected 0 to 4095 and min below max"],
        ),
        (
            change("wheel_radius = 0.05", "wheel_radius = 0"),
            vec!["channels.base.wheel_radius: 0 is out of range"],
        ),
        (
            change("[stop]", "[channels.ports]\nright = \"/dev/x\"\n[stop]"),
            vec!["channels.ports.right: the robot has no bus right"],
        ),
        (
            change(
                "salute = { left_arm = [-45, 110, 0] }",
                "salute = { left_arm = [-45, 130, 0] }",
            ),
            vec![
                "line 35",
                "salute: left_arm pitch: 130 is out of range, expected 0 to 120",
            ],
        ),
        (
            change("home = [0, 60, 0]", "home = [0, 60]"),
            vec!["left_arm has 3 joints (yaw, pitch, gripper), got 2 angles"],
        ),
        (
            change("id = 2", "id = 1"),
            vec!["left_arm pitch and left_arm yaw both have id 1 on bus left"],
        ),
        (change("joints = [", "joints = "), vec!["line "]),
    ] {
        let folder = folder(&[("my-arm.toml", &text)]);
        let path = folder.path().join("my-arm.toml");
        let Err(error) = kind_of(&path) else {
            panic!("accepted, expected {expected:?}:\n{text}");
        };
        let message = error.to_string();
        assert!(
            message.contains("my-arm.toml") && !message.contains('\n'),
            "{message}"
        );
        for part in expected {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let few = OWN.replacen("driver = \"feetech\"", "driver = \"unitree\"", 1);
    let few = few.split("[[channels.buses]]").next().unwrap().to_owned()
        + "[poses]\nhome = { left_arm = [0, 60, 0] }\n";
    let folder = folder(&[("my-arm.toml", &few)]);
    let error = kind_of(&folder.path().join("my-arm.toml"))
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("parts.left_arm: these channels move 7 joints of an arm, and it has 3"),
        "{error}"
    );
    // A configuration's changes.
    for (channels, expected) in [
        (
            json!({"answer_ms": 20, "motors": {"right_arm.elbow": {"max": 90.5}}}),
            None,
        ),
        (
            json!({"answer_ms": null}),
            Some("channels: answer_ms: null is not allowed"),
        ),
        (json!({"pots": {}}), Some("did you mean `ports`?")),
        (
            json!({"answer_ms": "20"}),
            Some("channels.answer_ms: invalid type: string \"20\", expected a whole number"),
        ),
    ] {
        let read = Shelf::default()
            .find("so101")
            .unwrap()
            .driver(channels.as_object().unwrap(), "channels");
        match (read.map(|_| ()), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (found, _) => panic!("{channels}: {found:?}"),
        }
    }
    let near = Shelf::default()
        .find("leekiwi")
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        near.contains("no robot has this name, known are booster_k1")
            && near.contains("did you mean lekiwi?"),
        "{near}"
    );
}

/// One broken file takes no other robot down, and is named.
#[test]
fn a_broken_file_leaves_out_its_robot_alone() {
    let folder = folder(&[
        ("my-arm.toml", OWN),
        ("broken.toml", "name = \"broken\"\nwheels = 3\n"),
    ]);
    let good = json!({"kind": "my-arm", "simulated": true});
    let notice = |harness: &Harness| {
        let last = harness
            .events()
            .into_iter()
            .rev()
            .find(|event| event.kind == "backend");
        last.and_then(|event| event.data).unwrap()
    };
    // Not asked for.
    let harness =
        Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": {"mine": good}})).unwrap();
    let reason = notice(&harness);
    assert_eq!(reason["state"], "simulated", "{reason}");
    let reason = reason["reason"].as_str().unwrap_or_default().to_owned();
    assert!(
        reason.contains("broken.toml, line 2: unknown field `wheels`"),
        "{reason}"
    );
    assert_eq!(
        harness.invoke("go_to_pose", json!({"pose": "home"})).unwrap()["success"],
        json!(true)
    );
    // One of two that are asked for.
    let robots = json!({"mine": good, "bad": {"kind": "broken"}});
    let harness = Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": robots})).unwrap();
    let done = harness
        .invoke("go_to_pose", json!({"robot": "mine", "pose": "home"}))
        .unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    let data: Value = notice(&harness);
    assert!(
        data["reason"].as_str().unwrap().contains("broken.toml, line 2"),
        "{data}"
    );
    let refused = harness
        .invoke("go_to_pose", json!({"robot": "bad", "pose": "home"}))
        .unwrap_err();
    assert!(
        refused.to_string().contains("unknown field `wheels`"),
        "{refused}"
    );
    // The only one.
    let robots = json!({"bad": {"kind": "broken"}});
    let refused = Harness::open::<Robots>(json!({"robots_dir": folder.path(), "robots": robots}));
    let refused = refused.err().unwrap().to_string();
    assert!(
        refused.contains("robots.bad: ") && refused.contains("broken.toml, line 2"),
        "{refused}"
    );
}

/// A file that breaks while its robot is driven leaves the stop after a crash what it needs.
#[test]
fn a_stop_after_a_crash_knows_a_file_that_broke() {
    use ovos_toolbox_sdk::Toolbox as _;
    let (files, data) = (folder(&[("my-arm.toml", OWN)]), tempfile::tempdir().unwrap());
    let config = json!({
        "robots_dir": files.path(), "data_dir": data.path(), "robots": {"mine": {"kind": "my-arm"}},
    });
    let harness = Harness::open::<Robots>(config.clone()).unwrap();
    drop(harness);
    std::fs::write(files.path().join("my-arm.toml"), "name = 5").unwrap();
    assert!(Harness::open::<Robots>(config.clone()).is_err());
    let stopped = Robots::safe_stop(serde_json::from_value(config.clone()).unwrap()).unwrap_err();
    // It has gone as far as the port, which is not there.
    assert!(stopped.to_string().contains("/dev/does-not-exist"), "{stopped}");
    std::fs::remove_dir_all(data.path().join("mine")).unwrap();
    let unknown = Robots::safe_stop(serde_json::from_value(config).unwrap()).unwrap_err();
    assert!(unknown.to_string().contains("my-arm.toml, line 1"), "{unknown}");
}

#[test]
fn two_files_of_one_robot_are_said() {
    let twin = OWN.replacen("my-arm", "my_arm", 1);
    let folder = folder(&[("my-arm.toml", OWN), ("my_arm.toml", &twin)]);
    let found = Shelf::open(Some(folder.path())).find("my-arm").map(|_| ());
    let message = found.unwrap_err().to_string();
    assert!(
        message.contains("my-arm.toml") && message.contains("my_arm.toml"),
        "{message}"
    );
}

/// What is wrong with an arm behind `ros2_control`, in the file of one.
#[test]
fn a_wrong_arm_in_ros_says_what_is_wrong() {
    let ur = include_str!("../../robots/unverified/ur.toml");
    let hand = "gripper = { open = 100, closed = 0, max_speed = 100 }";
    let percent = ur.replace(&format!("# {hand}"), hand);
    let channel = |key: &str| {
        format!(
            "\n[channels.arms.right_arm.gripper]\naction = \"/hand\"\njoint = \"finger\"\nopen = 0.08\nclosed = 0\n{key}\n"
        )
    };
    let joints = ur.split("[parts.right_arm]").nth(1).unwrap();
    let joints = joints.split("# A hand").next().unwrap();
    // A second arm, whose controller is that of the first, or whose hand's is.
    let second = |trajectory: &str, hands: [&str; 2]| {
        let arm = |side: &str, hand: &str| {
            format!(
                "\n[channels.arms.{side}_arm.gripper]\naction = \"{hand}\"\njoint = \"{side}\"\nopen = 1\nclosed = 0\nforce = 9\n"
            )
        };
        let [right, left] = hands;
        format!(
            "{percent}{}\n[parts.left_arm]\n{hand}{joints}\n[channels.arms.left_arm]\ntrajectory = \"{trajectory}\"\n{}",
            arm("right", right),
            arm("left", left)
        )
    };
    for (text, expected) in [
        (
            second(
                "scaled_joint_trajectory_controller/follow_joint_trajectory",
                ["/right", "/left"],
            ),
            "channels.arms.right_arm.trajectory: /scaled_joint_trajectory_controller/follow_joint_trajectory is \
             channels.arms.left_arm.trajectory as well; expected a controller of its own for each arm and each hand",
        ),
        (
            second("/left/follow_joint_trajectory", ["/hand", "/hand/"]),
            "channels.arms.right_arm.gripper.action: /hand is channels.arms.left_arm.gripper.action as well",
        ),
        (
            second(
                "/left/follow_joint_trajectory",
                ["/left/follow_joint_trajectory", "/hand"],
            ),
            "channels.arms.right_arm.gripper.action: /left/follow_joint_trajectory is channels.arms.left_arm.trajectory as well",
        ),
        (
            format!("{percent}{}", channel("force = 0")),
            "channels.arms.right_arm.gripper.force: expected 0.01 to 10000 N, got 0; leave it out",
        ),
        (
            percent.replace("open = 100, closed = 0", "open = 10, closed = 40") + &channel("force = 40"),
            "parts.right_arm.gripper: open has to be above closed",
        ),
        (
            ur.replace("[channels.arms.right_arm]", "[channels.arms.left_arm]"),
            "channels.arms.right_arm: missing; expected the action of its controller",
        ),
        (
            ur.replace("[channels.arms.right_arm]", "[channels.arms.right_hand]"),
            "did you mean `right_arm`?",
        ),
        (
            ur.replace("goal_tolerance = 0.5", "goal_tolerance = 0"),
            "channels.arms.right_arm.goal_tolerance: expected 0.01 to 10 degrees, got 0",
        ),
        (percent.clone(), "expected both, or neither"),
        (format!("{ur}{}", channel("")), "expected both, or neither"),
        (
            percent.replace("{ open = 100, closed = 0", "{ joint = 5, open = 100, closed = 0")
                + &channel("force = 40"),
            "parts.right_arm.gripper.joint: a hand in ROS is moved by an action of its own",
        ),
        (
            format!("{percent}{}", channel("force = -1")),
            "channels.arms.right_arm.gripper.force: expected 0.01 to 10000 N",
        ),
        (
            ur.replace("joints = \"/joint_states\"", "odometry = \"/odom\""),
            "channels.odometry: it is for a base",
        ),
        (
            ur.replace("emergency = \"hold\"", "emergency = \"torque_off\""),
            "an arm holds",
        ),
    ] {
        let folder = folder(&[("ur.toml", text.as_str())]);
        let error = match kind_of(&folder.path().join("ur.toml")) {
            Ok(_) => panic!("it is taken: {expected}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
