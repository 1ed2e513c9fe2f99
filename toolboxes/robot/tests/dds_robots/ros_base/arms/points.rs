//! Where an arm of a UR goes, by the vendor's own table, how long that takes, and what it does not go through.

use serde_json::json;

use super::super::Scene;
use super::{file, scene, scene_with, to_ready};
use crate::peers::domain;

/// Where the flange of a UR5e is, by the vendor's table of Denavit and Hartenberg, in the frame of its base.
fn flange(degrees: &[f64]) -> [f64; 3] {
    let quarter = std::f64::consts::FRAC_PI_2;
    let links = [
        (0.1625, 0.0, quarter),
        (0.0, -0.425, 0.0),
        (0.0, -0.3922, 0.0),
        (0.1333, 0.0, quarter),
        (0.0997, 0.0, -quarter),
        (0.0996, 0.0, 0.0),
    ];
    // What the vendor calls the base looks the other way than base_link.
    let mut frame = [[-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
    for ((along, out, twist), angle) in links.into_iter().zip(degrees) {
        let ((sin, cos), (tilt, level)) = (angle.to_radians().sin_cos(), f64::sin_cos(twist));
        let link = [
            [cos, -sin * level, sin * tilt, out * cos],
            [sin, cos * level, -cos * tilt, out * sin],
            [0.0, tilt, level, along],
            [0.0, 0.0, 0.0, 1.0],
        ];
        frame = frame.map(|row| {
            std::array::from_fn(|column| (0..4).map(|at| row[at] * link[at][column]).sum::<f64>())
        });
    }
    frame.map(|row| row[3])
}

/// The file that ships is driven to points, whichever joint the feedback names first.
#[test]
fn a_ur_goes_to_points_in_the_frame_of_its_base() {
    let Some(scene) = scene_with("gripper", domain(), &file()) else {
        return;
    };
    for [x, y, z] in [
        [0.4, -0.2, 0.3],
        [0.3, 0.4, 0.15],
        [-0.5, 0.1, 0.4],
        [0.1, -0.6, 0.6],
    ] {
        scene.does(
            "move_arm",
            json!({"arm": "right", "x": x, "y": y, "z": z, "speed": 1.0}),
        );
        let [at_x, at_y, at_z] = flange(scene.goals().last().unwrap());
        let off = [at_x - x, at_y - y, at_z - z]
            .map(|part| part * part)
            .iter()
            .sum::<f64>()
            .sqrt();
        assert!(
            off < 0.005,
            "{x} {y} {z}: the goal brings it to {at_x} {at_y} {at_z}"
        );
    }
    scene.base.say("other order");
    scene.does(
        "move_arm",
        json!({"arm": "right", "position": [0, -90, 90, -90, -90, 0]}),
    );
    let (tool, args) = (
        "move_arm",
        json!({"arm": "right", "position": [90, -80, 90, -90, -90, 0]}),
    );
    let run = scene.start(tool, args);
    run.wait().result().unwrap();
    let shares: Vec<f64> = run.progress().iter().filter_map(|one| one.fraction).collect();
    assert!(
        shares.len() > 3 && shares.is_sorted() && shares.iter().any(|share| *share > 0.3 && *share < 0.9),
        "{shares:?}"
    );
    // It arrives without feedback, too.
    scene.base.say("quiet");
    scene.does("move_arm", json!({"arm": "right", "position": "home"}));
}

#[test]
fn angles_that_bring_an_arm_below_its_table_are_refused_before_anything_is_sent() {
    let Some(scene) = scene("gripper") else { return };
    let angles = |angles: [f64; 6]| {
        (
            "move_arm",
            json!({"arm": "right", "position": angles, "speed": 1.0}),
        )
    };
    let (above, beyond) = (
        [0.0, -60.0, 150.0, -225.0, -90.0, 0.0],
        [0.0, -20.0, 40.0, 45.0, -90.0, 0.0],
    );
    scene.does(angles(above).0, angles(above).1);
    let sent = scene.goals().len();
    for (to, expected) in [
        ([0.0, -10.0, 90.0, -80.0, -90.0, 0.0], "would be at a height of"),
        (beyond, "no way there is above the table"),
    ] {
        let refused = scene.answer(angles(to));
        assert_eq!(refused["success"], false, "{refused:#}");
        assert!(refused.to_string().contains(expected), "{refused:#}");
    }
    assert_eq!(scene.goals().len(), sent, "a goal below the table was sent");
    // By another way it comes there.
    scene.does("move_arm", json!({"arm": "right", "position": "home"}));
    scene.does(angles(beyond).0, angles(beyond).1);

    // Without a shape nothing is checked, and who approves it is told.
    let flat = file()
        .split("[parts.right_arm.geometry]")
        .next()
        .unwrap()
        .to_owned()
        + "[channels]"
        + file().split_once("[channels]").unwrap().1;
    let Some(shapeless) = scene_with("gripper", domain(), &flat) else {
        return;
    };
    let sentence = |scene: &Scene| {
        let (tool, args) = to_ready();
        let plan = scene.harness.planned(tool, args).unwrap().unwrap();
        format!("{:?}", plan.sentences)
    };
    assert!(
        sentence(&shapeless).contains("the arm may hit the table"),
        "{}",
        sentence(&shapeless)
    );
    assert!(!sentence(&scene).contains("table"), "{}", sentence(&scene));
}

/// A plan does not know where the arm is: it is as long as the longest way, which the arm then goes.
#[test]
fn the_time_that_a_plan_gives_is_that_of_the_trajectory() {
    let Some(scene) = scene("gripper") else { return };
    let turned = |pan: f64| json!({"arm": "right", "position": [pan, -90, 90, -90, -90, 0], "speed": 1.0});
    scene.does("move_arm", turned(-180.0));
    let slowly = json!({"arm": "right", "position": [180, -90, 90, -90, -90, 0], "speed": 0.2});
    let allowed = scene.harness.plan("move_arm", slowly.clone()).unwrap().unwrap()[0]
        .timeout_ms
        .unwrap();
    let run = scene.start("move_arm", slowly);
    scene.base.wait("the second goal", |_| {
        (scene.values("seconds").len() >= 2).then_some(())
    });
    let seconds = scene.values("seconds")[1];
    scene.harness.cancel(run.id());
    scene.harness.halt(&["right_arm"], false).unwrap();
    let _ = run.wait();
    #[allow(clippy::cast_precision_loss, reason = "a minute in milliseconds")]
    let planned = (allowed as f64 / 1000.0 - 3.0) / 1.5;
    assert!(
        (planned - seconds).abs() < 0.2,
        "planned {planned} s, and the trajectory takes {seconds} s"
    );
}
