//! An SO-101 that is sent to points, judged by forward kinematics of what its servos' registers say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use feetech_sim::{Line, Servo};
use ovos_toolbox_sdk::testing::Harness;
use robot::robots::Robots;
use serde_json::{Value, json};

use crate::catalogue::each;
use crate::reach::{height, tip};

/// Where the joints are in the middle of their servos' turn, in degrees.
pub(crate) const MIDDLE: [f64; 6] = [0.0, 0.0, 90.0, 0.0, 0.0, 55.0];
pub(crate) const HOME: [f64; 6] = [0.0, -45.0, 90.0, 45.0, 0.0, 0.0];
/// How close to a point a hand has to be, in metres.
pub(crate) const CLOSE: f64 = 0.005;
/// How low a link may come: the clearance of the robot's file, less what an arm sags on its way.
pub(crate) const LEAST: f64 = 0.005 - 0.002;

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
    pub(crate) fn at(angles: &[f64]) -> Self {
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
    pub(crate) fn lowest<R>(&self, run: impl FnOnce() -> R) -> (R, f64) {
        let (done, heights) = self.heights(run);
        (done, heights.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// Runs something while it looks how high the lowest link is.
    pub(crate) fn heights<R>(&self, run: impl FnOnce() -> R) -> (R, Vec<f64>) {
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

pub(crate) fn to([x, y, z]: [f64; 3]) -> Value {
    json!({"arm": "right", "x": x, "y": y, "z": z, "speed": 1.0})
}

pub(crate) fn apart(one: [f64; 3], other: [f64; 3]) -> f64 {
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
            "give either position, or",
        ),
    ] {
        let refused = robot.invoke("move_arm", args.clone()).unwrap_err().to_string();
        assert!(refused.contains(why), "{args}: {refused}");
    }
}
