//! Movements, in the words that the servos hear.

use std::time::{Duration, Instant};

use feetech_sim::{Line, Servo, register as r};
use robot::action::LiftTarget;
use robot::adapter::Estop;
use robot::step::{Grip, HitchAction, Step};
use robot::subsystem::Subsystem;
use serde_json::json;

use crate::servos::{Body, Deed, Notices, lift, look, made, robot, robot_of, run, stop};
use crate::{bytes, drive, to, words};

#[tokio::test]
async fn opening_moves_nothing_and_powers_nothing() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    for (line, ids) in [(&body.left, 1..=11), (&body.right, 1..=8)] {
        let frames = line.frames();
        assert!(!frames.is_empty());
        for id in ids {
            assert_eq!(bytes(&frames, id, r::TORQUE_ENABLE), [0u8; 0], "torque of {id}");
            assert_eq!(words(&frames, id, r::GOAL_POSITION), [0i32; 0], "goal of {id}");
            assert!(
                words(&frames, id, r::GOAL_SPEED).iter().all(|speed| *speed == 0),
                "speed of {id}"
            );
        }
    }
    assert!(!body.powered() && !body.moves());
    let state = robot.state(Subsystem::LeftArm);
    assert_eq!(state["connected"], true);
    assert_eq!(state["positions"].as_object().unwrap().len(), 6, "{state}");
}

#[tokio::test]
async fn torque_goes_on_where_the_servo_is_and_then_it_goes_where_it_should() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let _ = body.right.take_frames();
    let output = run(
        &robot,
        Subsystem::RightArm,
        to(&[10.0, -45.0, 90.0, 45.0, 0.0, 20.0]),
    )
    .await
    .unwrap();
    let frames = body.right.frames();
    for (id, start, goal) in [
        (1, 1901, 2162),
        (2, 1902, 1536),
        (3, 1903, 2048),
        (4, 1904, 2560),
        (5, 1905, 2048),
    ] {
        let goals = words(&frames, id, r::GOAL_POSITION);
        assert_eq!(goals, [start, goal], "goals of {id}");
        assert_eq!(bytes(&frames, id, r::TORQUE_ENABLE), [1], "torque of {id}");
        let first_goal = frames
            .iter()
            .position(|frame| frame.word(id, r::GOAL_POSITION).is_some());
        let torque = frames
            .iter()
            .position(|frame| frame.byte(id, r::TORQUE_ENABLE).is_some());
        assert!(first_goal < torque, "servo {id} got torque before a goal");
        let there = body.right.servo(id, |servo| servo.position()).unwrap();
        assert!((there - f64::from(goal)).abs() < 13.0, "servo {id} is at {there}");
    }
    let fast = words(&frames, 2, r::GOAL_SPEED).into_iter().max().unwrap();
    assert!(
        fast <= 120 * 4096 / 360 + 1,
        "{fast} steps/s is more than 120 degrees/s"
    );
    assert!(
        body.left
            .frames()
            .iter()
            .all(|frame| frame.writes().iter().all(|write| write.1 == r::GOAL_SPEED))
    );
    assert!(
        (output.data["positions"]["elbow"].as_f64().unwrap() - 90.0).abs() < 1.5,
        "{output:?}"
    );
}

#[tokio::test]
async fn every_step_reaches_the_servo_it_is_for() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let rows: Vec<(Subsystem, Deed, u8, bool, i32)> = vec![
        (Subsystem::Lift, lift(LiftTarget::To(120.0)), 10, true, 1638),
        (Subsystem::Lift, lift(LiftTarget::By(-20.0)), 10, true, 1365),
        (
            Subsystem::Hitch,
            Step::Hitch {
                action: HitchAction::Open,
                grip_percent: None,
            }
            .into(),
            11,
            true,
            1593,
        ),
        (
            Subsystem::LeftArm,
            Step::Gripper { action: Grip::Open }.into(),
            6,
            true,
            2503,
        ),
        (Subsystem::Gantry, look(-45.0, 10.0), 7, false, 1536),
    ];
    for (subsystem, deed, id, left, goal) in rows {
        let what = format!("{deed:?}");
        let line = if left { &body.left } else { &body.right };
        let _ = line.take_frames();
        run(&robot, subsystem, deed)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let goals = words(&line.frames(), id, r::GOAL_POSITION);
        let last = *goals.last().unwrap_or_else(|| panic!("{what}: no goal"));
        assert!(
            (last - goal).abs() <= 13,
            "{what}: goals {goals:?}, expected {goal}"
        );
    }
    assert_eq!(bytes(&body.left.frames(), 6, r::TORQUE_ENABLE), [1]);
}

#[tokio::test]
async fn the_base_drives_on_a_lease_and_ends_at_zero() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    for (velocity, signs) in [
        ((0.1, 0.0, 0.0), [0, -1, 1]),
        ((0.0, 0.1, 0.0), [1, -1, -1]),
        ((0.0, 0.0, 0.8), [1, 1, 1]),
    ] {
        let _ = body.left.take_frames();
        let start = Instant::now();
        let (x, y, turn) = velocity;
        let output = run(&robot, Subsystem::Base, drive(x, y, turn, 500))
            .await
            .unwrap();
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(500));
        let frames = body.left.frames();
        for (id, sign) in (7..).zip(signs) {
            let speeds = words(&frames, id, r::GOAL_SPEED);
            assert_eq!(speeds.last(), Some(&0), "{velocity:?}: wheel {id}: {speeds:?}");
            let driven: Vec<i32> = speeds
                .iter()
                .filter(|speed| **speed != 0)
                .map(|speed| speed.signum())
                .collect();
            assert!(
                driven.iter().all(|found| *found == sign),
                "{velocity:?}: wheel {id}: {speeds:?}"
            );
            assert!(
                driven.len() >= 2 || sign == 0,
                "{velocity:?}: wheel {id} was not kept going: {speeds:?}"
            );
        }
        assert!(!body.moves(), "{velocity:?}");
        let measured = &output.data["measured"];
        let far = measured["forward_m"]
            .as_f64()
            .unwrap()
            .hypot(measured["left_m"].as_f64().unwrap());
        // On a busy machine the stop comes later than 500 ms, and what was driven until then is measured, too.
        let (least, most) = (x.hypot(y) * 0.5, x.hypot(y) * took.as_secs_f64());
        assert!(
            far > least - 0.02 && far < most + 0.02,
            "{velocity:?} in {took:?}: {measured}"
        );
    }
}

#[tokio::test]
async fn lekiwi_drives_on_one_bus() {
    let line = Line::start((1..=9).map(Servo::new)).unwrap();
    let section = json!({"layout": "lekiwi", "ports": {"right": line.path()}});
    let (robot, _) = robot_of(&section, None);
    robot.connect().await.unwrap();
    run(&robot, Subsystem::Base, drive(0.1, 0.0, 0.0, 300))
        .await
        .unwrap();
    let frames = line.frames();
    // Wheels come as joints; they are made wheels, in a way that outlives the power.
    assert_eq!(bytes(&frames, 7, r::MODE), [1]);
    assert_eq!(bytes(&frames, 7, r::LOCK), [0, 1]);
    for (id, sign) in [(7, -1), (8, 0), (9, 1)] {
        let speeds = words(&frames, id, r::GOAL_SPEED);
        assert!(
            speeds.iter().all(|speed| *speed == 0 || speed.signum() == sign),
            "{id}: {speeds:?}"
        );
        assert_eq!(speeds.last(), Some(&0));
    }
    assert!(!line.moves());
}

#[tokio::test]
async fn the_range_of_a_motor_holds_for_the_hand_and_the_lift() {
    let body = Body::new();
    let mut section = body.section();
    section["motors"] = json!({"left_arm.gripper": {"max": 60}, "lift.lift": {"min": 40, "max": 200}});
    let (robot, _) = robot_of(&section, None);
    robot.connect().await.unwrap();
    let open = Step::Gripper { action: Grip::Open };
    run(&robot, Subsystem::LeftArm, open).await.unwrap();
    // 60 degrees, of which 40 are step 2048.
    let goals = words(&body.left.frames(), 6, r::GOAL_POSITION);
    assert_eq!(goals.last(), Some(&2276), "{goals:?}");
    for (to, step) in [
        (LiftTarget::By(250.0), 2730),
        (LiftTarget::By(-250.0), 546),
        (LiftTarget::To(300.0), 2730),
    ] {
        run(&robot, Subsystem::Lift, lift(to)).await.unwrap();
        let goals = words(&body.left.frames(), 10, r::GOAL_POSITION);
        assert_eq!(goals.last(), Some(&step), "{to:?}: {goals:?}");
    }
    let lift = robot.capabilities().lift.as_ref().unwrap();
    assert_eq!((lift.min, lift.max, lift.home), (40.0, 200.0, 150.0));
}

#[tokio::test]
async fn what_it_cannot_do_it_says() {
    let body = Body::new();
    let robot = robot(&body);
    let error = run(&robot, Subsystem::Hitch, Step::VerifyCharge {})
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(error, "not supported by five: a sensor on the charger's contacts");
    let damp = made(&body.section(), &stop(Some(Estop::Damp)), &Notices::default())
        .err()
        .unwrap();
    assert!(damp.to_string().contains("estop damp"), "{damp}");
}
