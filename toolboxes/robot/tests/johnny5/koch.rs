//! A Koch arm: the driver over Dynamixel's servos, whose packets, table and turns are others.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use feetech_sim::{Dynamixel, Fault, Line, Model, control as c};
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::servos::within;

/// The variable with the section of the robot that another process of this test drives.
const SECTION: &str = "OVOS_TEST_KOCH_SECTION";
/// What LeRobot's calibration has written into each servo.
const OFFSET: i32 = 100;

struct Koch {
    line: Line,
    folder: tempfile::TempDir,
}

impl Koch {
    /// An arm after LeRobot's calibration, in its middle.
    fn new() -> Self {
        let servos = (1..=6).map(|id| {
            let model = if id < 3 { Model::Xl430 } else { Model::Xl330 };
            let servo = Dynamixel::new(id, model).at(1948);
            match id {
                1 | 5 => servo.calibrated(0, 4095, OFFSET, 4),
                // Its middle is half open.
                6 => servo.calibrated(1700, 2500, OFFSET, 5),
                _ => servo.calibrated(1000, 3096, OFFSET, 4),
            }
        });
        Self {
            line: Line::dynamixel(servos).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn section(&self, emergency: &str) -> Value {
        let robots = Path::new(env!("CARGO_MANIFEST_DIR")).join("robots/unverified");
        json!({"robots_dir": robots, "robots": {"koch": {
            "kind": "koch",
            "estop": emergency,
            "channels": {"answer_ms": 500, "ports": {"right": self.line.path()}},
        }}})
    }

    fn open(&self, emergency: &str) -> Harness {
        Self::opened(self.section(emergency)).unwrap()
    }

    fn opened(section: Value) -> Result<Harness, String> {
        Harness::open::<Robots>(section)
            .map(|robot| robot.with_deadline(Duration::from_secs(60)))
            .map_err(|error| error.to_string())
    }

    /// Of every servo.
    fn numbers(&self, address: u8, width: usize) -> Vec<i32> {
        let number = |id| {
            self.line
                .servo(id, |_| ())
                .and_then(|()| self.line.table(id, |table| table.number(address, width)))
        };
        (1..=6).filter_map(number).collect()
    }

    /// Where each horn stands as a client reads it.
    fn steps(&self) -> Vec<f64> {
        let steps = |id| self.line.servo(id, |servo| servo.position() + f64::from(OFFSET));
        (1..=6).filter_map(steps).collect()
    }

    fn rests(&self) {
        within("rest", || (!self.line.moves()).then_some(()));
    }
}

fn moved(robot: &Harness, angles: &[i32]) -> Value {
    robot
        .invoke("move_arm", json!({"arm": "right", "position": angles}))
        .unwrap()
}

#[test]
fn it_moves_within_its_limits_and_its_hand_holds_what_is_in_it() {
    let koch = Koch::new();
    let robot = koch.open("torque_off");
    assert_eq!(
        koch.numbers(c::TORQUE_ENABLE, 1),
        [0; 6],
        "opening switches nothing on"
    );
    let done = moved(&robot, &[20, -10, 10, 0, 30, 10]);
    assert_eq!(done["success"], true, "{done:#}");
    for (steps, degrees) in koch.steps().iter().zip([20.0, -10.0, 10.0, 0.0, 30.0]) {
        assert!(
            (steps - 2048.0 - degrees * 4096.0 / 360.0).abs() < 3.0,
            "{steps} for {degrees}"
        );
    }
    let speeds = koch.numbers(c::PROFILE_VELOCITY, 4);
    // 60 and 90 degrees a second are 10 and 15 turns a minute.
    assert!(speeds.iter().all(|speed| (1..=66).contains(speed)), "{speeds:?}");
    let status = robot
        .call("motor_status", json!({"subsystem": "right_arm"}))
        .unwrap();
    assert!(status.to_string().contains("shoulder_pan"), "{status:#}");

    let error = robot.plan(
        "move_arm",
        json!({"arm": "right", "position": [91, 0, 0, 0, 0, 0]}),
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("shoulder_pan") && error.contains("90"), "{error}");

    for (action, closed, holding) in [("open", false, false), ("close", true, true)] {
        if closed {
            koch.line.servo(6, |hand| hand.block(2100.0, f64::INFINITY));
        }
        let done = robot
            .invoke("gripper", json!({"arm": "right", "action": action}))
            .unwrap();
        let found = (
            &done["success"],
            &done["data"]["closed"],
            &done["data"]["holding"],
        );
        assert_eq!(found, (&json!(true), &json!(closed), &json!(holding)), "{done:#}");
    }
}

/// Every stop ends the motion; what has no power afterwards is what the stop says.
#[test]
fn every_stop_ends_its_motion() {
    for (emergency, estop, torque) in [
        (None, "hold", 1),
        (Some(()), "hold", 1),
        (Some(()), "torque_off", 0),
    ] {
        let koch = Koch::new();
        let robot = koch.open(estop);
        let plan = robot
            .plan(
                "move_arm",
                json!({"arm": "right", "position": [80, 0, 0, 0, 0, 0]}),
            )
            .unwrap()
            .unwrap();
        let run = robot
            .start_action("move_arm", plan.into_iter().next().unwrap(), json!({}))
            .unwrap();
        within("motion", || koch.line.moves().then_some(()));
        _ = robot.halt(&["all"], emergency.is_some());
        koch.rests();
        assert!(run.wait().result().is_err(), "{estop}");
        assert!(
            koch.steps()[0] < 2900.0,
            "{estop}: it went on to {:?}",
            koch.steps()
        );
        within("the torque after the stop", || {
            (koch.numbers(c::TORQUE_ENABLE, 1)[0] == torque).then_some(())
        });
    }
}

/// Not a test: the process that drives the arm in the test below, and is killed there.
#[test]
fn drives_a_koch_where_asked_to() {
    let Ok(section) = std::env::var(SECTION) else {
        return;
    };
    let robot = Koch::opened(serde_json::from_str(&section).unwrap()).unwrap();
    let done = moved(&robot, &[80, 0, 0, 0, 0, 0]);
    panic!("it was to be killed: {done:#}");
}

#[test]
fn it_rests_after_a_toolbox_that_is_killed_in_motion() {
    let koch = Koch::new();
    let section = koch.section("torque_off");
    let mut driver = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "koch::drives_a_koch_where_asked_to", "--nocapture"])
        .env(SECTION, section.to_string())
        .spawn()
        .unwrap();
    within("motion", || koch.line.moves().then_some(()));
    kill_process(Pid::from_child(&driver), Signal::KILL).unwrap();
    driver.wait().unwrap();
    let robot = Harness::open::<Robots>(json!({})).unwrap();
    within("a safe stop", || robot.safe_stop(section.clone()).ok());
    koch.rests();
    assert_eq!(koch.numbers(c::TORQUE_ENABLE, 1), [0; 6]);
}

#[test]
fn what_it_cannot_do_safely_is_refused_with_the_reason() {
    type Break = fn(&Line);
    let rows: [(&str, Break, &str); 6] = [
        (
            "a dead servo",
            |line| line.break_servo(3, Fault::Absent),
            "servo 3 on bus right does not answer",
        ),
        (
            "an alarm, which only a restart ends",
            |line| _ = line.table(2, |table| table.set(c::HARDWARE_ERROR, 1, 0x20)),
            "torque_enable was written 1 three times and reads 0; it reports overload: recover_servo with action reboot",
        ),
        (
            // It would count a turn more with the torque on, and go the long way round.
            "the end of a turn in the range of the joint",
            |line| _ = line.servo(4, |servo| servo.push(-1960.0)),
            "its count wraps round inside the range of its joint",
        ),
        (
            "another time base, in which a velocity is a time",
            |line| _ = line.table(5, |table| table.set(c::DRIVE_MODE, 1, 4)),
            "its drive mode (register 10) is 4",
        ),
        (
            "a wheel",
            |line| _ = line.table(5, |table| table.set(c::OPERATING_MODE, 1, 1)),
            "is in wheel mode",
        ),
        (
            "limits stored in the servo",
            |line| _ = line.table(2, |table| table.set(c::MIN_POSITION, 4, 2000)),
            "(registers 52 and 48); calibrate it",
        ),
    ];
    for (name, break_it, why) in rows {
        let koch = Koch::new();
        let robot = koch.open("torque_off");
        break_it(&koch.line);
        let done = moved(&robot, &[10, -10, 10, 0, 30, 0]);
        assert!(
            done["success"] == false && done.to_string().contains(why),
            "{name}: {done:#}"
        );
        koch.rests();
    }
}

#[test]
fn an_alarm_is_named_and_a_restart_ends_it() {
    let koch = Koch::new();
    let robot = koch.open("torque_off");
    let done = moved(&robot, &[10, 0, 0, 0, 0, 0]);
    assert_eq!(done["success"], true, "{done:#}");
    koch.line.table(2, |table| table.set(c::HARDWARE_ERROR, 1, 0x24));
    let done = moved(&robot, &[0, 0, 0, 0, 0, 0]);
    assert_eq!(done["success"], false, "{done:#}");
    let status = robot
        .call("motor_status", json!({"subsystem": "right_arm"}))
        .unwrap();
    let status = status.to_string();
    assert!(
        status.contains("overheating") && status.contains("overload"),
        "{status}"
    );
    let done = robot
        .invoke(
            "recover_servo",
            json!({"bus": "right", "motor_id": 2, "action": "reboot"}),
        )
        .unwrap();
    assert_eq!(done["success"], true, "{done:#}");
    let done = moved(&robot, &[0, 0, 0, 0, 0, 0]);
    assert_eq!(done["success"], true, "{done:#}");
}

/// The file of `lerobot-calibrate`: the zero of each joint, and that the servos have what it says.
#[test]
fn it_is_calibrated_by_lerobots_file() {
    const JOINTS: [&str; 6] = [
        "shoulder_pan",
        "shoulder_lift",
        "elbow_flex",
        "wrist_flex",
        "wrist_roll",
        "gripper",
    ];
    for (offset, why) in [
        (OFFSET, None),
        (
            -3000,
            Some("has the homing offset 100, its calibration file says -3000"),
        ),
    ] {
        let koch = Koch::new();
        let mut file = json!({});
        for (id, name) in (1..).zip(JOINTS) {
            let (low, high) = match name {
                "shoulder_pan" | "wrist_roll" => (0, 4095),
                "gripper" => (1700, 2500),
                _ => (1100, 3196),
            };
            file[name] = json!({"id": id, "drive_mode": 0, "homing_offset": offset, "range_min": low, "range_max": high});
        }
        let path = koch.folder.path().join("mine.json");
        std::fs::write(&path, file.to_string()).unwrap();
        let mut section = koch.section("torque_off");
        section["robots"]["koch"]["channels"]["calibration"] = json!({"right_arm": path});
        let robot = Koch::opened(section).unwrap();
        let done = moved(&robot, &[0, 0, 0, 0, 0, 10]);
        match why {
            None => {
                assert_eq!(done["success"], true, "{done:#}");
                // The middle of its range in the file, and from its closed end.
                let steps = koch.steps();
                assert!((steps[2] - 2148.0).abs() < 3.0, "{steps:?}");
                assert!(
                    (steps[5] - 1700.0 - 10.0 * 4096.0 / 360.0).abs() < 3.0,
                    "{steps:?}"
                );
            }
            Some(why) => assert!(done.to_string().contains(why), "{done:#}"),
        }
    }
}
