//! What calibration reads, what it measures, and when it writes.

use std::time::Duration;

use feetech_sim::{Frame, Line, Servo, register as r};
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

/// What LeRobot's calibration leaves in the servos of an SO-101: lower limit, upper limit, homing offset. The gripper's are
/// typical ones; it closes at its lower limit.
const KEPT: Kept = [
    (800, 3300, 12),
    (900, 3200, -40),
    (850, 3000, 105),
    (1000, 3100, 0),
    (0, 4095, -1000),
    (2031, 3476, 300),
];

type Kept = [(u16, u16, i16); 6];

struct Arm {
    line: Line,
    left: Kept,
    data: tempfile::TempDir,
}

impl Arm {
    fn new() -> Self {
        Self::with(KEPT)
    }

    /// An SO-101 that LeRobot has calibrated so, in the middle of its ranges.
    fn with(left: Kept) -> Self {
        let servos = (1..).zip(left).map(|(id, (low, high, offset))| {
            let middle = i32::from(low).midpoint(i32::from(high)) + i32::from(offset);
            Servo::new(id)
                .at(u16::try_from(middle).unwrap())
                .calibrated(low, high, offset)
        });
        Self {
            line: Line::start(servos).unwrap(),
            left,
            data: tempfile::tempdir().unwrap(),
        }
    }

    /// The toolbox for it; `more` is added to the section `johnny5`.
    fn open(&self, more: &Value) -> Harness {
        let mut section = json!({"layout": "so101", "answer_ms": 500, "ports": {"right": self.line.path()}});
        section
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let config = json!({
            "robots": {"so": {"adapter": "johnny5", "johnny5": section}},
            "data_dir": self.data.path(),
        });
        Harness::open::<Robots>(config)
            .unwrap()
            .with_deadline(Duration::from_secs(120))
    }

    fn kept(&self) -> Vec<(u16, u16, i32)> {
        let kept = |id| self.line.servo(id, |servo| servo.calibration()).unwrap();
        (1..=6).map(kept).collect()
    }

    fn as_lerobot_left_it(&self) -> bool {
        let as_left = self
            .left
            .map(|(low, high, offset)| (low, high, i32::from(offset)));
        self.kept() == as_left
    }

    /// Puts something in the way of a joint, so many steps from where it is.
    fn fence(&self, id: u8, below: f64, above: f64) {
        self.line.servo(id, |servo| {
            let horn = servo.position() + f64::from(servo.calibration().2);
            servo.block(horn - below, horn + above);
        });
    }

    /// Bytes written to what outlives the power.
    fn lasting_writes(&self) -> Vec<(u8, u8, Vec<u8>)> {
        let frames = self.line.frames();
        let writes = frames.iter().flat_map(Frame::writes);
        writes.filter(|(_, address, _)| *address < 40).collect()
    }
}

fn call(harness: &Harness, tool: &str, args: Value) -> Value {
    harness
        .invoke(tool, args.clone())
        .unwrap_or_else(|failure| panic!("{tool} {args}: {failure:?}"))
}

#[test]
fn an_arm_that_lerobot_calibrated_keeps_its_calibration() {
    let arm = Arm::new();
    let harness = arm.open(&json!({}));
    for id in 1..=6 {
        arm.fence(id, 120.0, 120.0);
    }
    let read = call(&harness, "calibrate_arm", json!({"arm": "right"}));
    assert_eq!(read["success"], true, "{read:#}");
    let gripper = &read["data"]["servos"]["gripper"];
    assert_eq!(
        (
            &gripper["min_position"],
            &gripper["max_position"],
            &gripper["homing_offset"]
        ),
        (&json!(2031), &json!(3476), &json!(300)),
        "{read:#}"
    );
    assert!(!arm.line.moves() && arm.line.servo(1, |servo| servo.byte(r::TORQUE_ENABLE)) == Some(0));

    // Everything that once wrote, and with it all that has to do with calibration.
    for (tool, args) in [
        ("calibrate_arm", json!({"arm": "right", "mode": "offsets_only"})),
        ("setup_robot", json!({})),
        ("calibrate_arm", json!({"arm": "right", "mode": "full"})),
        (
            "enable_torque",
            json!({"subsystem": "right_arm", "enable": false}),
        ),
        (
            "recover_servo",
            json!({"bus": "right", "motor_id": 3, "action": "reset_error"}),
        ),
        ("self_test", json!({"subsystems": ["right_arm"]})),
        ("save_config", json!({"name": "as_it_is"})),
        ("load_config", json!({"name": "as_it_is"})),
        ("set_home_position", json!({"subsystem": "right_arm"})),
    ] {
        let done = call(&harness, tool, args.clone());
        assert_eq!(done["success"], true, "{tool} {args}: {done:#}");
    }
    for (tool, args) in [
        (
            "calibrate_arm",
            json!({"arm": "right", "mode": "full", "write": true}),
        ),
        (
            "calibrate_arm",
            json!({"arm": "right", "mode": "offsets_only", "write": true}),
        ),
        (
            "set_home_position",
            json!({"subsystem": "right_arm", "write": true}),
        ),
        ("load_config", json!({"name": "as_it_is", "write": true})),
    ] {
        let refused = harness.invoke(tool, args.clone()).unwrap_err();
        assert!(
            refused.kind == "PermissionError" && refused.message.contains("allow_calibration_write"),
            "{tool} {args}: {refused:?}"
        );
    }
    assert_eq!(
        arm.lasting_writes(),
        [],
        "nothing that outlives the power was written"
    );
    assert!(arm.as_lerobot_left_it(), "{:?}", arm.kept());
}

#[test]
fn a_servo_is_made_a_joint_again_with_the_calibration_and_the_torque_that_it_had() {
    let arm = Arm::new();
    arm.line.servo(6, |servo| servo.set_word(r::MAX_TORQUE, 500));
    let harness = arm.open(&json!({}));
    let reconfigure = json!({"bus": "right", "motor_id": 6, "action": "reconfigure"});
    assert_eq!(call(&harness, "recover_servo", reconfigure)["success"], true);
    assert_eq!(arm.line.servo(6, |servo| servo.word(r::TORQUE_LIMIT)), Some(500));
    assert!(arm.as_lerobot_left_it(), "{:?}", arm.kept());
}

#[test]
fn measured_ends_are_written_where_that_is_allowed_and_a_backup_brings_the_old_ones_back() {
    // Narrow, so that it takes less time.
    let left = [
        (1928, 2168, 12),
        (1850, 2250, -40),
        (1500, 2400, 105),
        (1930, 2170, 0),
        (1900, 2140, -1000),
        (2031, 2271, 300),
    ];
    let arm = Arm::with(left);
    let harness = arm.open(&json!({"allow_calibration_write": true}));
    // The elbow meets something on both sides, the shoulder on one; the others come to their own limits.
    arm.fence(3, 300.0, 200.0);
    arm.fence(2, 150.0, f64::INFINITY);
    let elbow = arm.line.servo(3, |servo| servo.position()).unwrap();
    let refused = harness.invoke("calibrate_arm", json!({"arm": "right", "write": true}));
    assert!(refused.unwrap_err().message.contains("mode full"));

    let write = json!({"arm": "right", "mode": "full", "write": true});
    let unseen = harness.invoke("calibrate_arm", write.clone()).unwrap();
    assert!(
        unseen["success"] == false && unseen["message"].to_string().contains("has not been measured"),
        "{unseen:#}"
    );
    let shown = call(&harness, "calibrate_arm", json!({"arm": "right", "mode": "full"}));
    let range = &shown["data"]["ranges"]["elbow"];
    assert_eq!(
        (&range["low"]["felt"], &range["high"]["felt"]),
        (&json!(true), &json!(true))
    );
    let near = |step: &Value, there: f64| (step.as_f64().unwrap() - there).abs() <= 2.0;
    assert!(
        near(&range["low"]["step"], elbow - 300.0) && near(&range["high"]["step"], elbow + 200.0),
        "{shown:#}"
    );
    let range = &shown["data"]["ranges"]["shoulder"];
    assert_eq!(
        (&range["low"]["felt"], &range["high"]["felt"]),
        (&json!(true), &json!(false))
    );
    // It does not press on its own limits.
    let range = &shown["data"]["ranges"]["gripper"];
    assert_eq!(
        (&range["low"]["felt"], &range["high"]["felt"]),
        (&json!(false), &json!(false))
    );
    assert!(arm.as_lerobot_left_it(), "{:?}", arm.kept());
    assert_eq!(
        arm.line.servo(3, |servo| servo.word(r::TORQUE_LIMIT)),
        Some(1000),
        "it has its torque again"
    );

    let _ = arm.line.take_frames();
    let written = call(&harness, "calibrate_arm", write);
    assert_eq!(written["success"], true, "{written:#}");
    let goals = |frame: &Frame| (1..=6).any(|id| frame.word(id, r::GOAL_POSITION).is_some_and(|_| id == 1));
    assert!(!arm.line.frames().iter().any(goals), "what writes moves nothing");
    let kept = arm.kept();
    let inside = |limit: u16, end: f64| (f64::from(limit) - end).abs() <= 14.0;
    assert!(
        inside(kept[2].0, elbow - 300.0) && inside(kept[2].1, elbow + 200.0) && kept[2].2 == 105,
        "{kept:?}"
    );
    assert_eq!((kept[1].1, kept[1].2), (2250, -40), "what was not felt stays");
    for untouched in [0, 3, 4, 5] {
        let (low, high, offset) = left[untouched];
        assert_eq!(
            kept[untouched],
            (low, high, i32::from(offset)),
            "servo {}",
            untouched + 1
        );
    }
    arm.line.servo(3, Servo::power_cycle);
    assert_eq!(arm.kept()[2], kept[2], "it outlives the power");

    let backup = written["data"]["backup"].as_str().unwrap();
    assert!(std::path::Path::new(backup).exists(), "{backup}");
    let name = std::path::Path::new(backup)
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap();
    let shown = call(&harness, "load_config", json!({"name": name}));
    let elbow = &shown["data"]["differences"]["right_arm.elbow"];
    assert_eq!(
        (&elbow["saved"]["min_position"], &elbow["kept"]["homing_offset"]),
        (&json!(1500), &json!(105)),
        "{shown:#}"
    );
    assert_eq!(arm.kept(), kept, "what shows writes nothing");
    // The arm would fall.
    let restore = json!({"name": name, "write": true});
    let held = harness.invoke("load_config", restore.clone()).unwrap();
    assert!(
        held["success"] == false && held["message"].to_string().contains("enable_torque"),
        "{held:#}"
    );
    call(
        &harness,
        "enable_torque",
        json!({"subsystem": "right_arm", "enable": false}),
    );
    let restored = call(&harness, "load_config", restore);
    assert_eq!(restored["success"], true, "{restored:#}");
    let saved_first = restored["data"]["backup"].as_str().unwrap();
    assert!(std::path::Path::new(saved_first).exists(), "{restored:#}");
    assert!(arm.as_lerobot_left_it(), "{:?}", arm.kept());
}

#[test]
fn an_end_near_the_layouts_is_felt() {
    // A joint counts as arrived within four degrees of its goal, and can meet something just before it.
    let narrow = |low: u16, offset| (low, low + 240, offset);
    for degrees in [2.0, 3.9] {
        let arm = Arm::with([
            narrow(1928, 12),
            narrow(1930, -40),
            narrow(1900, 105),
            narrow(1930, 0),
            narrow(1900, -1000),
            narrow(2031, 300),
        ]);
        let harness = arm.open(&json!({}));
        // The elbow's range ends above by the servo's own limit.
        let end = 2140.0 - degrees * 4096.0 / 360.0;
        arm.line
            .servo(3, |servo| servo.block(f64::NEG_INFINITY, end + 105.0));
        let shown = call(&harness, "calibrate_arm", json!({"arm": "right", "mode": "full"}));
        let high = &shown["data"]["ranges"]["elbow"]["high"];
        assert_eq!(high["felt"], true, "{degrees} degrees: {high}");
        assert!(
            (high["step"].as_f64().unwrap() - end).abs() < 2.0,
            "{degrees}: {high}"
        );
    }
}

#[test]
fn a_servos_own_limits_narrow_the_layout() {
    let arm = Arm::new();
    let harness = arm.open(&json!({}));
    // The elbow's upper limit is at 3000 steps: 173.7 degrees.
    let beyond = json!({"arm": "right", "position": [0, 0, 180, 0, 0, 60]});
    let refused = harness.invoke("move_arm", beyond).unwrap();
    let message = refused["message"].to_string();
    assert!(
        refused["success"] == false && message.contains("right_arm elbow") && message.contains("173.7"),
        "{refused:#}"
    );
    assert!(!arm.line.moves() && arm.line.servo(3, |servo| servo.byte(r::TORQUE_ENABLE)) == Some(0));
    // A hand goes as far as it goes, and holds nothing then.
    let closed = call(&harness, "gripper", json!({"arm": "right", "action": "close"}));
    assert_eq!(
        (
            &closed["success"],
            &closed["data"]["closed"],
            &closed["data"]["holding"]
        ),
        (&json!(true), &json!(true), &json!(false)),
        "{closed:#}"
    );
    let there = json!({"object": "cup", "x": 0.22, "y": 0.0, "z": 0.06});
    let picked = harness.invoke("pick_object", there).unwrap();
    assert!(
        picked["success"] == false && picked["message"].to_string().contains("closed on nothing"),
        "{picked:#}"
    );
    // Nor is anything put down.
    let placed = harness
        .invoke(
            "place_object",
            json!({"location": "table", "x": 0.22, "y": 0.0, "z": 0.06}),
        )
        .unwrap();
    assert!(
        placed["success"] == false && placed["message"].to_string().contains("holds nothing"),
        "{placed:#}"
    );
}

/// LeRobot's file of this arm.
fn file(arm: &Arm, change: impl FnOnce(&mut Value)) -> std::path::PathBuf {
    let names = [
        "shoulder_pan",
        "shoulder_lift",
        "elbow_flex",
        "wrist_flex",
        "wrist_roll",
        "gripper",
    ];
    let joints = (1..).zip(names).zip(KEPT).map(|((id, name), (low, high, offset))| {
        let joint = json!({"id": id, "drive_mode": 0, "homing_offset": offset, "range_min": low, "range_max": high});
        (name.to_owned(), joint)
    });
    let mut file = Value::Object(joints.collect());
    change(&mut file);
    let path = arm.data.path().join("mine.json");
    std::fs::write(&path, file.to_string()).unwrap();
    path
}

#[test]
fn lerobots_file_says_where_zero_and_the_ends_are() {
    let arm = Arm::new();
    let path = file(&arm, |_| {});
    let harness = arm.open(&json!({"calibration": {"right_arm": path}}));
    let moved = call(
        &harness,
        "move_arm",
        json!({"arm": "right", "position": [0, 10, 90, 0, 0, 0], "speed": 1.0}),
    );
    assert_eq!(moved["success"], true, "{moved:#}");
    // The middles of the ranges; the gripper is closed at its lower end.
    for (id, steps) in [
        (1, 2050.0),
        (2, 2050.0 + 113.8),
        (3, 1925.0),
        (4, 2050.0),
        (5, 2047.5),
        (6, 2031.0),
    ] {
        let there = arm.line.servo(id, |servo| servo.position()).unwrap();
        assert!(
            (there - steps).abs() < 14.0,
            "servo {id} is at {there}, expected {steps}"
        );
    }
    let open = call(&harness, "gripper", json!({"arm": "right", "action": "open"}));
    assert_eq!(open["success"], true, "{open:#}");
    let there = arm.line.servo(6, |servo| servo.position()).unwrap();
    assert!(
        (there - (2031.0 + 110.0 * 4096.0 / 360.0)).abs() < 14.0,
        "open is {there}"
    );
    assert!(arm.as_lerobot_left_it());
}

#[test]
fn an_arm_that_is_not_the_files_does_not_move() {
    let arm = Arm::new();
    let path = file(&arm, |file| file["elbow_flex"]["homing_offset"] = json!(-300));
    let harness = arm.open(&json!({"calibration": {"right_arm": path}}));
    let refused = harness
        .invoke("move_arm", json!({"arm": "right", "position": "home"}))
        .unwrap();
    let message = refused["message"].to_string();
    assert!(
        refused["success"] == false && message.contains("homing offset 105") && message.contains("-300"),
        "{refused:#}"
    );
    for (key, value, reason) in [
        ("drive_mode", json!(1), "drive_mode 0"),
        ("id", json!(9), "expected id 3"),
        ("range_max", json!(5000), "range_max"),
    ] {
        let path = file(&arm, |file| file["elbow_flex"][key] = value);
        let config = json!({"robots": {"so": {"adapter": "johnny5", "johnny5": {
            "layout": "so101", "ports": {"right": arm.line.path()}, "calibration": {"right_arm": path},
        }}}});
        let Err(refused) = Harness::open::<Robots>(config) else {
            panic!("{key}: opened");
        };
        let message = format!("{refused:?}");
        assert!(
            message.contains(reason) && message.contains("elbow_flex"),
            "{message}"
        );
    }
    assert!(arm.as_lerobot_left_it());
}
