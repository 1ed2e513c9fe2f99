//! An SO-101 that is sent to points, judged by forward kinematics of what its servos' registers say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use feetech_sim::{Line, Servo, register as r};
use ovos_toolbox_sdk::testing::Harness;
use robot::geometry::{End, Posture, Search};
use robot::robots::Robots;
use robot::subsystem::Subsystem;
use serde_json::{Value, json};

use crate::catalogue::each;
use crate::reach::{height, tip};

/// Where the joints are in the middle of their servos' turn, in degrees.
const MIDDLE: [f64; 6] = [0.0, 0.0, 90.0, 0.0, 0.0, 55.0];
const HOME: [f64; 6] = [0.0, -45.0, 90.0, 45.0, 0.0, 0.0];
/// How close to a point a hand has to be, in metres.
const CLOSE: f64 = 0.005;
/// How low a link may come: the clearance of the robot's file, less what an arm sags on its way.
const LEAST: f64 = 0.005 - 0.002;

/// An SO-101 on a line of its own, at home.
pub(crate) struct Arm {
    pub(crate) line: Line,
    folder: tempfile::TempDir,
}

impl Arm {
    pub(crate) fn new() -> Self {
        Self::at(&HOME)
    }

    /// One whose joints are at these angles.
    fn at(angles: &[f64]) -> Self {
        let servos = (1..=6u8)
            .zip(angles.iter().zip(MIDDLE))
            .map(|(id, (angle, middle))| {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "0 to 4095"
                )]
                let steps = (2048.0 + (angle - middle) * 4096.0 / 360.0).round() as u16;
                Servo::new(id).at(steps)
            });
        Self {
            line: Line::start(servos).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn open(&self) -> Harness {
        let channels = json!({"answer_ms": 500, "ports": {"right": self.line.path()}});
        let config = json!({
            "robots": {"arm": {"kind": "so101", "channels": channels}},
            "data_dir": self.folder.path(), "recognition_timeout_ms": 100,
        });
        Harness::open::<Robots>(config)
            .unwrap()
            .with_deadline(Duration::from_secs(90))
    }

    /// The angles of the joints, from the registers.
    pub(crate) fn angles(&self) -> Vec<f64> {
        let angle = |(id, middle): (u8, f64)| {
            let steps = self.line.servo(id, |servo| servo.position()).unwrap();
            (steps - 2048.0) * 360.0 / 4096.0 + middle
        };
        (1..=6u8).zip(MIDDLE).map(angle).collect()
    }

    /// Runs something while it looks how low the lowest link comes.
    fn lowest<R>(&self, run: impl FnOnce() -> R) -> (R, f64) {
        let (done, heights) = self.heights(run);
        (done, heights.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// Runs something while it looks how high the lowest link is.
    fn heights<R>(&self, run: impl FnOnce() -> R) -> (R, Vec<f64>) {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut heights = Vec::new();
                while !ended.load(Ordering::SeqCst) {
                    heights.push(height(&self.angles()));
                    std::thread::park_timeout(Duration::from_millis(3));
                }
                heights.push(height(&self.angles()));
                heights
            });
            let done = run();
            ended.store(true, Ordering::SeqCst);
            (done, watch.join().unwrap())
        })
    }
}

fn to([x, y, z]: [f64; 3]) -> Value {
    json!({"arm": "right", "x": x, "y": y, "z": z, "speed": 1.0})
}

fn apart(one: [f64; 3], other: [f64; 3]) -> f64 {
    let square: f64 = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
    square.sqrt()
}

/// Thirty points: in front and to both sides, near the table and high up, near the base and at the end of the reach.
const REACHED: [[f64; 3]; 30] = [
    [0.20, 0.0, 0.02],
    [0.24, 0.0, 0.02],
    [0.28, 0.0, 0.02],
    [0.32, 0.0, 0.03],
    [0.36, 0.0, 0.04],
    [0.20, 0.10, 0.02],
    [0.24, 0.12, 0.02],
    [0.26, 0.18, 0.03],
    [0.15, 0.20, 0.02],
    [0.10, 0.25, 0.03],
    [0.20, -0.10, 0.02],
    [0.24, -0.12, 0.02],
    [0.26, -0.18, 0.03],
    [0.15, -0.20, 0.02],
    [0.10, -0.25, 0.03],
    [0.20, 0.0, 0.10],
    [0.30, 0.0, 0.10],
    [0.30, 0.10, 0.15],
    [0.25, -0.20, 0.15],
    [0.15, 0.15, 0.20],
    [0.25, 0.0, 0.30],
    [0.20, 0.15, 0.35],
    [0.20, -0.15, 0.35],
    [0.35, 0.0, 0.20],
    [0.15, 0.0, 0.40],
    [0.05, 0.30, 0.10],
    [0.05, -0.30, 0.10],
    [0.18, 0.05, 0.05],
    [0.30, -0.05, 0.01],
    [0.39, 0.0, 0.22],
];

/// Twenty points, and the reason why the hand does not go there.
const REFUSED: [([f64; 3], &str); 20] = [
    ([0.60, 0.0, 0.10], "out of reach"),
    ([0.50, 0.0, 0.02], "out of reach"),
    ([1.00, 1.00, 0.50], "out of reach"),
    ([0.0, 0.60, 0.20], "out of reach"),
    ([0.0, -0.60, 0.20], "out of reach"),
    ([0.20, 0.0, 0.70], "out of reach"),
    ([0.0, 0.0, 0.90], "out of reach"),
    ([-0.40, 0.0, 0.05], "out of reach"),
    ([-0.50, 0.10, 0.30], "out of reach"),
    ([0.45, 0.20, 0.05], "out of reach"),
    ([0.45, -0.20, 0.05], "out of reach"),
    ([3.0, 0.0, 0.0], "too low"),
    ([0.24, 0.0, 0.0], "too low"),
    ([0.24, 0.0, -0.02], "too low"),
    ([0.30, 0.10, -0.10], "too low"),
    ([0.20, -0.20, -0.30], "too low"),
    ([0.15, 0.15, 0.004], "too low"),
    ([0.10, 0.0, -0.05], "too low"),
    ([0.43, 0.0, 0.40], "out of reach"),
    ([-0.30, -0.30, 0.30], "out of reach"),
];

#[test]
fn a_hand_comes_to_thirty_points_and_no_link_comes_below_the_table() {
    each(&[0, 1, 2], |part: &usize| {
        let arm = Arm::new();
        let robot = arm.open();
        for point in REACHED.iter().skip(*part).step_by(3) {
            let (done, lowest) = arm.lowest(|| robot.invoke("move_arm", to(*point)).unwrap());
            assert_eq!(done["success"], true, "{point:?}: {done:#}");
            let at = tip(&arm.angles());
            assert!(apart(at, *point) <= CLOSE, "{point:?}: {at:?} {done:#}");
            assert!(
                lowest >= LEAST,
                "on the way to {point:?} a link came to {lowest:.4} m"
            );
        }
    });
}

#[test]
fn a_hand_goes_to_none_of_twenty_points_and_says_why() {
    let arm = Arm::new();
    let robot = arm.open();
    let before = arm.angles();
    for (point, why) in REFUSED {
        let done = robot.invoke("move_arm", to(point)).unwrap();
        assert_eq!(done["success"], false, "{point:?}: {done:#}");
        let message = done["message"].as_str().unwrap();
        assert!(
            message.contains("right_arm cannot go to") && message.contains(why),
            "{point:?}: {message}"
        );
        assert_eq!(arm.angles(), before, "{point:?}: it moved");
    }
    for (args, why) in [
        (json!({"arm": "right", "x": 0.2}), "give all three"),
        (json!({"arm": "right"}), "expected a position, or x, y and z"),
        (json!({"arm": "both", "x": 0.2, "y": 0.0, "z": 0.1}), "one arm"),
        (
            json!({"arm": "right", "position": "home", "x": 0.2, "y": 0.0, "z": 0.1}),
            "give a position, or",
        ),
    ] {
        let refused = robot.invoke("move_arm", args.clone()).unwrap_err().to_string();
        assert!(refused.contains(why), "{args}: {refused}");
    }
}

/// How much a held joint is short, in degrees.
const SHORT: f64 = 1.8;
/// Steps of a servo in a degree.
const STEPS: f64 = 4096.0 / 360.0;

/// Waits until the arm has stood for a while.
fn settle(arm: &Arm) {
    let mut before = arm.angles();
    let mut stands = 0;
    while stands < 40 {
        std::thread::park_timeout(Duration::from_millis(5));
        let now = arm.angles();
        stands = if now == before { stands + 1 } else { 0 };
        before = now;
    }
}

#[test]
fn an_arm_that_is_held_above_the_table_stays_above_it_when_it_is_let_go() {
    let (high, low) = ([0.3, 0.0, 0.06], [0.3, 0.0, 0.006]);
    // Held for good, and held until it is told to come closer.
    let rows = [(2_u8, false), (3, false), (2, true), (3, true)];
    each(&rows, |(servo, early)| {
        let arm = Arm::new();
        let robot = arm.open();
        let go = |point| robot.invoke("move_arm", to(point)).unwrap();
        let at = || arm.line.servo(*servo, |servo| servo.position()).unwrap();
        let free = || {
            let free = |servo: &mut Servo| servo.block(f64::NEG_INFINITY, f64::INFINITY);
            arm.line.servo(*servo, free).unwrap();
        };
        assert_eq!(go(high)["success"], true);
        let above = at();
        assert_eq!(go(low)["success"], true);
        let below = at();
        assert_eq!(go(high)["success"], true);
        // So little short of where it goes that it is no blocked joint, and yet out of the hand's tolerance.
        let held = below + (above - below).signum() * SHORT * STEPS;
        assert!((above - below).abs() > 3.0 * STEPS, "{servo}: {above} {below}");
        let (least, most) = if above > below {
            (held, f64::INFINITY)
        } else {
            (f64::NEG_INFINITY, held)
        };
        arm.line.servo(*servo, |servo| servo.block(least, most)).unwrap();
        drop(arm.line.take_frames());
        let (done, lowest) = arm.lowest(|| {
            std::thread::scope(|scope| {
                let call = scope.spawn(|| go(low));
                if *early {
                    let beyond = arm.line.wait(Duration::from_secs(20), |frames| {
                        let goals = frames
                            .iter()
                            .filter_map(|frame| frame.word(*servo, r::GOAL_POSITION));
                        let different: std::collections::BTreeSet<u16> = goals.collect();
                        (different.len() > 1 || call.is_finished()).then_some(())
                    });
                    assert!(beyond.is_some());
                    free();
                }
                let done = call.join().unwrap();
                free();
                settle(&arm);
                done
            })
        });
        assert!(lowest >= LEAST, "{servo} {early}: {lowest:.4} m, {done:#}");
        assert!(
            done["success"] == *early
                || ["mm away from", "is blocked"]
                    .iter()
                    .any(|why| done["message"].as_str().unwrap().contains(why)),
            "{done:#}"
        );
    });
}

/// The angles of an arm near a point, with its shoulder so far down that its lowest link is at a height.
fn lowered(point: [f64; 3], to: f64) -> Vec<f64> {
    let (model, on) = (crate::servos::known("so101"), Subsystem::RightArm);
    let search = Search {
        shape: model.geometry(on).unwrap(),
        joints: model.capabilities.joints(on).unwrap(),
        fingers: None,
    };
    let mut angles = search.solve(&HOME, (End::Tip, point), Posture::Near).unwrap();
    while height(&angles) > to {
        angles[1] += 0.1;
    }
    angles
}

#[test]
fn an_arm_that_begins_too_low_rises_and_does_not_sink_again() {
    let (left, right) = ([0.1, 0.25, 0.03], [0.1, -0.25, 0.03]);
    // Where it begins, how low, where it goes, and why it does not.
    let rows = [
        (left, 0.0, right, None),
        (left, -0.01, right, None),
        ([0.15, 0.2, 0.02], 0.0, [0.15, -0.2, 0.02], None),
        ([0.36, 0.0, 0.04], -0.005, [0.2, 0.0, 0.02], None),
        (left, -0.03, right, Some("more than 2 cm below")),
        (
            [0.24, 0.0, 0.02],
            -0.05,
            [0.24, 0.0, 0.1],
            Some("joint values first"),
        ),
    ];
    each(&rows, |(from, low, goal, why)| {
        let arm = Arm::at(&lowered(*from, *low));
        let robot = arm.open();
        let before = arm.angles();
        let (done, heights) = arm.heights(|| robot.invoke("move_arm", to(*goal)).unwrap());
        assert_eq!(done["success"], why.is_none(), "{from:?} {low}: {done:#}");
        if let Some(why) = why {
            assert!(done["message"].as_str().unwrap().contains(why), "{done:#}");
            assert_eq!(arm.angles(), before, "it moved");
        }
        let mut highest = f64::NEG_INFINITY;
        for height in heights {
            // What it may sink, and as much again for joints that do not arrive together.
            assert!(
                height >= LEAST.min(highest - 0.004),
                "{from:?} {low}: from {highest:.4} m it sank to {height:.4} m"
            );
            highest = highest.max(height);
        }
    });
}

#[test]
fn a_joint_that_is_measured_beyond_its_range_stays_and_the_hand_goes_to_points() {
    let arm = Arm::new();
    // A closed gripper, a fifth of a degree beyond its range.
    let steps = 2048.0 - (MIDDLE[5] + 0.2) * STEPS;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 4095"
    )]
    let beyond = |servo: &mut Servo| *servo = servo.clone().at(steps.round() as u16);
    arm.line.servo(6, beyond).unwrap();
    assert!(arm.angles()[5] < -0.1, "{:?}", arm.angles());
    let robot = arm.open();
    let done = robot.invoke("move_arm", to([0.24, 0.1, 0.05])).unwrap();
    assert_eq!(done["success"], true, "{done:#}");
}

#[test]
fn nothing_is_commanded_after_a_stop_in_the_middle_of_a_way_of_several_legs() {
    let arm = Arm::new();
    let robot = arm.open();
    let begun = robot.invoke("move_arm", to([0.1, 0.25, 0.03])).unwrap();
    assert_eq!(begun["success"], true, "{begun:#}");
    drop(arm.line.take_frames());
    // By a point above: straight it would come below the table.
    let plan = robot.plan("move_arm", to([0.1, -0.25, 0.03])).unwrap().unwrap();
    let run = robot
        .start_action("move_arm", plan.into_iter().next().unwrap(), json!({}))
        .unwrap();
    let first = run.wait_progress(1);
    assert!(format!("{first:?}").contains("leg 1 of 2"), "{first:?}");
    run.cancel();
    robot.halt(&["right_arm"], false).unwrap();
    assert!(run.wait().result().is_err());
    settle(&arm);
    let (stood, frames) = (arm.angles(), arm.line.take_frames());
    let commands = |frames: &[feetech_sim::Frame]| {
        let of = |id| {
            frames
                .iter()
                .filter(move |frame| frame.word(id, r::GOAL_POSITION).is_some())
        };
        (1..=6_u8).flat_map(of).count()
    };
    assert!(commands(&frames) > 0);
    settle(&arm);
    assert_eq!(commands(&arm.line.take_frames()), 0);
    assert_eq!(arm.angles(), stood);
    let off = apart(tip(&stood), [0.1, -0.25, 0.03]);
    assert!(off > 0.02, "it went on to the end: {off:.3} m");
    assert!(height(&stood) >= LEAST, "{stood:?}");
}

/// Something in the hand's way when it closes, 30 degrees wide.
fn put(arm: &Arm, there: bool) {
    let closed = 2048.0 + (30.0 - MIDDLE[5]) * 4096.0 / 360.0;
    let low = if there { closed } else { f64::NEG_INFINITY };
    arm.line
        .servo(6, |servo| servo.block(low, f64::INFINITY))
        .unwrap();
}

/// A call while a handler of recognition questions answers on the bus.
fn answered(robot: &Harness, tool: &str, args: Value) -> Value {
    std::thread::scope(|scope| {
        let call = scope.spawn(|| robot.invoke(tool, args).unwrap());
        while !call.is_finished() {
            robot.deliver();
            std::thread::park_timeout(Duration::from_millis(3));
        }
        call.join().unwrap()
    })
}

#[test]
fn a_hand_goes_where_the_thing_is_and_holds_it_or_says_that_it_does_not() {
    let arm = Arm::new();
    let robot = arm.open();
    robot.respond("ovos.robot.recognise", |question| {
        let args = &question["args"];
        match (question["tool"].as_str(), args["name"].as_str()) {
            (Some("locate"), Some("screw")) => {
                assert_eq!(args["frame"], "right_arm", "{question:#}");
                Some(Ok(
                    json!({"position": {"frame": "right_arm", "x": 0.22, "y": 0.1, "z": 0.03}}),
                ))
            }
            // In a frame that is not the arm's.
            (Some("locate"), Some("nut")) => Some(Ok(
                json!({"position": {"frame": "map", "x": 0.22, "y": 0.1, "z": 0.03}}),
            )),
            // Where it was, which is no answer.
            (Some("locate"), Some("ghost")) => Some(Ok(json!({
                "success": false, "position": {"frame": "right_arm", "x": 0.22, "y": 0.1, "z": 0.03}
            }))),
            _ => Some(Ok(json!({"success": false, "message": "not seen"}))),
        }
    });
    for name in ["unicorn", "nut", "ghost"] {
        let before = arm.angles();
        let unknown = answered(&robot, "pick_object", json!({"object": name}));
        assert_eq!(unknown["success"], false, "{unknown:#}");
        let message = unknown["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("does not know where {name} is")),
            "{message}"
        );
        assert_eq!(arm.angles(), before, "it moved");
    }
    let cup = json!({"object": "cup", "x": 0.24, "y": -0.06, "z": 0.04});
    let air = answered(&robot, "pick_object", cup.clone());
    assert_eq!(air["success"], false, "{air:#}");
    assert!(
        air["message"].as_str().unwrap().contains("closed on nothing"),
        "{air:#}"
    );
    let nothing = answered(
        &robot,
        "place_object",
        json!({"location": "shelf", "x": 0.2, "y": 0.1, "z": 0.1}),
    );
    assert!(
        nothing["message"].as_str().unwrap().contains("holds nothing"),
        "{nothing:#}"
    );

    for (object, place, at) in [
        (
            cup,
            json!({"location": "left", "x": 0.2, "y": 0.12, "z": 0.04}),
            [0.24, -0.06],
        ),
        (
            json!({"object": "screw"}),
            json!({"location": "left", "x": 0.2, "y": -0.12, "z": 0.0}),
            [0.22, 0.1],
        ),
    ] {
        put(&arm, true);
        let (picked, lowest) = arm.lowest(|| answered(&robot, "pick_object", object));
        assert_eq!(picked["success"], true, "{picked:#}");
        assert_eq!(picked["data"]["results"]["grasp"]["holding"], true, "{picked:#}");
        let lifted = tip(&arm.angles());
        // Above where it lay: the fixed finger is beside the thing.
        let beside = (lifted[0] - at[0]).hypot(lifted[1] - at[1]);
        assert!(beside < 0.04 && lifted[2] > 0.07, "{at:?}: {lifted:?}");
        assert!(lowest >= LEAST, "{lowest}");
        let (placed, lowest) = arm.lowest(|| answered(&robot, "place_object", place));
        assert_eq!(placed["success"], true, "{placed:#}");
        assert!(lowest >= LEAST, "{lowest}");
        put(&arm, false);
    }
}

#[test]
fn what_a_hand_has_shown_it_finds_again() {
    let arm = Arm::new();
    let robot = arm.open();
    let there = [0.25, 0.08, 0.06];
    let call = |robot: &Harness, tool: &str, args: Value| {
        let done = robot.invoke(tool, args).unwrap();
        assert_eq!(done["success"], true, "{tool}: {done:#}");
        done
    };
    call(&robot, "move_arm", to(there));
    let kept = call(&robot, "remember_place", json!({"place": "Tray"}));
    assert_eq!(kept["data"]["position"]["arm"], "right_arm", "{kept:#}");
    let showed = tip(&arm.angles());
    call(&robot, "move_arm", json!({"arm": "right", "position": "home"}));
    drop(robot.close());
    // Beyond the end of the toolbox.
    let robot = arm.open();
    let places = call(&robot, "list_places", json!({}));
    assert_eq!(places["data"]["places"][0]["reachable"], true, "{places:#}");
    put(&arm, true);
    call(&robot, "pick_object", json!({"object": "tray"}));
    let lifted = tip(&arm.angles());
    assert!(
        (lifted[0] - showed[0]).hypot(lifted[1] - showed[1]) < 0.03,
        "{lifted:?} {showed:?}"
    );
    call(&robot, "move_arm", json!({"arm": "right", "position": "TRAY"}));
    assert!(
        apart(tip(&arm.angles()), showed) < 2.0 * CLOSE,
        "{:?} {showed:?}",
        tip(&arm.angles())
    );
    call(&robot, "forget_place", json!({"place": "tray"}));
}

/// A recogniser that knows the things of a simulator, as the example's questions and answers go.
struct Recogniser {
    python: std::process::Child,
    answers: std::io::BufReader<std::process::ChildStdout>,
    _things: tempfile::TempDir,
}

impl Recogniser {
    fn start(things: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("things.json");
        std::fs::write(&file, things.to_string()).unwrap();
        let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recogniser.py");
        let mut python = std::process::Command::new("python3")
            .arg(example)
            .arg(file)
            .arg("--lines")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let answers = std::io::BufReader::new(python.stdout.take().unwrap());
        Self {
            python,
            answers,
            _things: folder,
        }
    }

    fn answer(&mut self, question: &Value) -> Value {
        use std::io::{BufRead as _, Write as _};
        writeln!(self.python.stdin.as_mut().unwrap(), "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Recogniser {
    fn drop(&mut self) {
        drop(self.python.stdin.take());
        self.python.wait().unwrap();
    }
}

#[test]
fn what_the_example_recogniser_sees_is_listed_and_picked() {
    let arm = Arm::new();
    let robot = arm.open();
    let things = json!({"objects": [
        {"name": "cup", "bearing": 10, "distance": 0.3, "at": [0.23, -0.05, 0.04]},
        {"name": "lamp", "bearing": -30, "distance": 2.0, "at": [1.7, 1.0, 0.5]},
    ]});
    let recogniser = std::sync::Mutex::new(Recogniser::start(&things));
    robot.respond("ovos.robot.recognise", move |question| {
        Some(Ok(recogniser.lock().unwrap().answer(&question)))
    });
    let seen = answered(&robot, "what_is_there", json!({}));
    assert_eq!(seen["success"], true, "{seen:#}");
    let cup = &seen["data"]["things"][0];
    assert_eq!(
        (&cup["name"], &cup["bearing_degrees"]),
        (&json!("cup"), &json!(-10.0)),
        "{seen:#}"
    );
    assert_eq!(cup["position"]["frame"], "right_arm", "{seen:#}");
    put(&arm, true);
    for (object, why) in [
        ("cup", None),
        ("lamp", Some("out of reach")),
        ("fork", Some("does not know where fork is")),
    ] {
        let picked = answered(&robot, "pick_object", json!({"object": object}));
        assert_eq!(picked["success"], why.is_none(), "{object}: {picked:#}");
        assert!(
            picked["message"]
                .as_str()
                .unwrap()
                .contains(why.unwrap_or_default()),
            "{object}: {picked:#}"
        );
    }
    let at = tip(&arm.angles());
    assert!(
        (at[0] - 0.23).hypot(at[1] + 0.05) < 0.04 && at[2] > 0.07,
        "{at:?}"
    );
}

#[test]
fn an_answer_of_another_shape_is_refused() {
    let arm = Arm::new();
    let robot = arm.open();
    for (answer, why) in [
        (
            json!({"things": "a cup"}),
            "otherwise than schemas/recognition says",
        ),
        (json!({"objects": []}), "missing field `things`"),
        (json!({"things": [{"angle": 5}]}), "missing field `name`"),
        (
            json!({"success": false, "message": "the camera is off"}),
            "the camera is off",
        ),
    ] {
        let said = answer.clone();
        robot.respond("ovos.robot.recognise", move |_| Some(Ok(said.clone())));
        let seen = answered(&robot, "what_is_there", json!({}));
        assert_eq!(seen["success"], false, "{answer}: {seen:#}");
        assert!(
            seen["message"].as_str().unwrap().contains(why),
            "{answer}: {seen:#}"
        );
    }
}
