//! An SO-101 near its table: what holds it, lets it go, or begins too low, and where it is stopped on its way.

use std::time::Duration;

use feetech_sim::{Servo, register as r};
use robot::geometry::{End, Posture, Search};
use robot::subsystem::Subsystem;
use serde_json::json;

use crate::catalogue::each;
use crate::points::{Arm, HOME, LEAST, MIDDLE, apart, to};
use crate::reach::{height, tip};

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
