//! Where an SO-101's hand is in its poses, by the published URDF.

use robot::model::{Intensity, Kind, Model, Rounds};
use robot::subsystem::Subsystem;

use crate::servos::known;

type Vector = [f64; 3];
type Turn = [Vector; 3];

const PI: f64 = std::f64::consts::PI;
/// Origin and roll, pitch, yaw of the five joints of `so101_new_calib.urdf`, each in its parent; each turns about its z.
const JOINTS: [(Vector, Vector); 5] = [
    ([0.038_835_3, 0.0, 0.0624], [PI, 0.0, -PI]),
    ([-0.030_399_2, -0.018_277_8, -0.0542], [-PI / 2.0, -PI / 2.0, 0.0]),
    ([-0.112_57, -0.028, 0.0], [0.0, 0.0, PI / 2.0]),
    ([-0.1349, 0.0052, 0.0], [0.0, 0.0, -PI / 2.0]),
    ([0.0, -0.0611, 0.0181], [PI / 2.0, 0.0, PI]),
];
/// In the gripper: the tip of the fixed finger, and the axis of the moving one.
const TIP: Vector = [-0.0079, -0.000_218, -0.098_127_4];
const JAW: Vector = [0.0202, 0.0188, -0.0234];

fn by(turn: &Turn, vector: Vector) -> Vector {
    turn.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

fn then(a: &Turn, b: &Turn) -> Turn {
    let column = |j: usize| [b[0][j], b[1][j], b[2][j]];
    a.map(|row| [0, 1, 2].map(|j| row.iter().zip(column(j)).map(|(a, b)| a * b).sum()))
}

fn turned([roll, pitch, yaw]: Vector) -> Turn {
    let ((sr, cr), (sp, cp), (sy, cy)) = (roll.sin_cos(), pitch.sin_cos(), yaw.sin_cos());
    [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
}

fn plus(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Elbow, wrist, hand, and the tips of both fingers, in metres above the table's origin. The layout's elbow counts from
/// stretched, the URDF's from the middle of its way.
fn places(angles: &[f64]) -> Vec<Vector> {
    let mut at = [0.0; 3];
    let mut turn = turned([0.0; 3]);
    let mut found = Vec::new();
    for ((origin, rpy), (joint, angle)) in JOINTS.iter().zip(angles.iter().enumerate()) {
        let angle = if joint == 2 { angle - 90.0 } else { *angle };
        at = plus(at, by(&turn, *origin));
        turn = then(
            &then(&turn, &turned(*rpy)),
            &turned([0.0, 0.0, angle.to_radians()]),
        );
        found.push(at);
    }
    // The first two are in the base.
    let mut found = found.split_off(2);
    found.push(plus(at, by(&turn, TIP)));
    // The moving finger is as long as the fixed one, and closed beside it.
    let closed = [TIP[0] - JAW[0], TIP[1] - JAW[1], TIP[2] - JAW[2]];
    let opened = turned([0.0, angles[5].to_radians(), 0.0]);
    found.push(plus(at, by(&turn, plus(JAW, by(&opened, closed)))));
    let opened = turned([0.0, -angles[5].to_radians(), 0.0]);
    found.push(plus(at, by(&turn, plus(JAW, by(&opened, closed)))));
    found
}

pub(crate) fn height(angles: &[f64]) -> f64 {
    places(angles)
        .iter()
        .map(|place| place[2])
        .fold(f64::INFINITY, f64::min)
}

pub(crate) fn tip(angles: &[f64]) -> Vector {
    places(angles)[3]
}

#[test]
fn the_urdf_is_the_published_one() {
    // By an independent reader of the file.
    let zero = tip(&[0.0, 0.0, 90.0, 0.0, 0.0, 0.0]);
    for (found, expected) in zero.iter().zip([0.391, 0.0, 0.226]) {
        assert!((found - expected).abs() < 0.001, "{zero:?}");
    }
    // Johnny Five's poses, through the same file: up to 29.2 cm where it should pick, and 7 mm above the table.
    for (angles, expected) in [
        ([0.0, -60.0, 90.0, 90.0, 0.0, 0.0], 0.230),
        ([0.0, -45.0, 70.0, 80.0, 0.0, 0.0], 0.292),
        ([-30.0, -20.0, 150.0, 20.0, 0.0, 0.0], 0.007),
    ] {
        assert!(
            (tip(&angles)[2] - expected).abs() < 0.001,
            "{angles:?}: {:?}",
            tip(&angles)
        );
    }
}

/// Every position that the model sends an SO-101 to, with its name.
fn positions(model: &Model) -> Vec<(String, Vec<f64>)> {
    let arm = Subsystem::RightArm;
    let mut all = Vec::new();
    for name in model.pose_names() {
        all.push((format!("pose {name}"), model.pose_of(name, arm).unwrap()));
    }
    let routines = [
        (Kind::Wave, vec!["friendly", "excited", "royal", "shy"]),
        (
            Kind::Gesture,
            vec![
                "happy",
                "sad",
                "excited",
                "curious",
                "thinking",
                "surprised",
                "confused",
                "proud",
                "shy",
            ],
        ),
        (Kind::Dance, vec!["happy", "silly", "groovy", "victory"]),
    ];
    let mut played = 0;
    for (kind, names) in routines {
        for name in names {
            let frames = model.routine(kind, name, arm, Rounds::One(Intensity::NORMAL));
            for frame in frames.into_iter().flatten() {
                played += 1;
                all.push((format!("{kind:?} {name}"), frame.positions));
            }
        }
    }
    assert!(played > 20, "only {played} keyframes");
    for bearing in [-90.0, 0.0, 60.0] {
        let (frames, _) = model.point(arm, bearing, 1.0).unwrap();
        all.push((format!("point {bearing}"), frames[0].positions.clone()));
    }
    all
}

#[test]
fn no_link_of_an_so101_comes_near_the_table() {
    let all = positions(&known("so101"));
    for (from, a) in &all {
        for (to, b) in &all {
            // The joints arrive together.
            for part in 0..=10 {
                let part = f64::from(part) / 10.0;
                let between: Vec<f64> = a.iter().zip(b).map(|(a, b)| a + (b - a) * part).collect();
                let height = height(&between);
                assert!(height >= 0.03, "{from} to {to}: {:.1} cm", height * 100.0);
            }
        }
    }
}
