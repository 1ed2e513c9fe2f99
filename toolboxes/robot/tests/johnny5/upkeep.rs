//! Torque, recovery and degraded mode, and the settings that servos keep.

use feetech_sim::{Servo, register as r};
use robot::adapter::Control;
use robot::capability::BusName;
use robot::step::{Recovery, Step};
use robot::subsystem::Subsystem;
use serde_json::json;

use crate::servos::{Body, action, robot, robot_of, run};
use crate::words;

#[tokio::test]
async fn upkeep_reads_and_writes_what_it_says() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    body.left
        .servo(2, |servo| servo.set_byte(r::TEMPERATURE, 66))
        .unwrap();

    let scan = Step::ScanMotors {
        buses: vec![BusName::Left, BusName::Right],
    };
    let scanned = run(&robot, Subsystem::All, scan).await.unwrap();
    assert_eq!(scanned.message, "19 motors answer");
    assert_eq!(scanned.data["buses"]["left"]["motors"][0]["model"], 777);

    let status = run(
        &robot,
        Subsystem::LeftArm,
        Step::MotorStatus { motor_id: Some(2) },
    )
    .await
    .unwrap();
    assert_eq!(status.data["motors"]["left:2"]["temperature"], 66, "{status:?}");
    let strange = run(
        &robot,
        Subsystem::LeftArm,
        Step::MotorStatus { motor_id: Some(9) },
    )
    .await;
    assert!(
        strange
            .unwrap_err()
            .to_string()
            .contains("left_arm has no motor 9")
    );

    let health = Step::ReadHealth {
        bus: BusName::Left,
        temps: true,
        loads: false,
    };
    let health = run(&robot, Subsystem::All, health).await.unwrap();
    assert!(
        health.message.contains("left:2 (left_arm shoulder) is at 66 °C"),
        "{health:?}"
    );
    let tested = run(&robot, Subsystem::LeftArm, Step::SelfTest { verbose: false })
        .await
        .unwrap_err();
    assert!(
        tested.to_string().contains("shoulder (servo 2) is at 66 °C"),
        "{tested}"
    );

    run(&robot, Subsystem::RightArm, Step::EnableTorque { enable: true })
        .await
        .unwrap();
    let torque = run(&robot, Subsystem::RightArm, Step::CheckTorque {})
        .await
        .unwrap();
    assert_eq!(torque.data["all_on"], true, "{torque:?}");
    assert!(!body.moves(), "torque alone moves nothing");
    run(&robot, Subsystem::RightArm, Step::EnableTorque { enable: false })
        .await
        .unwrap();
    assert!(!body.powered());

    let tested = Step::TestMotor {
        bus: BusName::Right,
        motor_id: 8,
        angle: 10.0,
    };
    let tested = run(&robot, Subsystem::Gantry, tested).await.unwrap();
    assert!(
        (tested.data["turned"].as_f64().unwrap() - 10.0).abs() < 1.5,
        "{tested:?}"
    );
    let tested = Step::TestMotor {
        bus: BusName::Left,
        motor_id: 7,
        angle: 10.0,
    };
    run(&robot, Subsystem::Base, tested).await.unwrap();
    run(&robot, Subsystem::Gantry, Step::SelfTest { verbose: true })
        .await
        .unwrap();
    for (on, mode) in [
        (Subsystem::LeftArm, "quick"),
        (Subsystem::Gantry, "center_only"),
        (Subsystem::Lift, "home_only"),
        (Subsystem::Base, "full"),
    ] {
        let calibrate = Step::Calibrate {
            mode: mode.to_owned(),
            write: false,
        };
        run(&robot, on, calibrate)
            .await
            .unwrap_or_else(|error| panic!("{on} {mode}: {error}"));
    }
    assert!(!body.moves());
}

#[tokio::test]
async fn ids_homes_and_settings_outlive_the_power() {
    let body = Body::new();
    let mut section = body.section();
    section["allow_calibration_write"] = json!(true);
    let (robot, _) = robot_of(&section, None);
    robot.connect().await.unwrap();
    let set = |current_id, new_id| Step::SetMotorId {
        bus: BusName::Right,
        current_id,
        new_id,
    };
    for (current, new, reason) in [
        (6, 6, "has id 6 already"),
        (99, 12, "no motor 99"),
        (6, 5, "has id 5 already"),
    ] {
        let refused = run(&robot, Subsystem::All, set(current, new))
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    run(&robot, Subsystem::All, set(6, 12)).await.unwrap();
    body.right.servo(12, Servo::power_cycle).unwrap();
    assert!(body.right.servo(12, |_| ()).is_some(), "the id was kept");
    run(&robot, Subsystem::All, set(12, 6)).await.unwrap();

    let saved = run(
        &robot,
        Subsystem::All,
        Step::SaveConfig {
            name: String::new(),
            subsystems: vec![Subsystem::Gantry],
        },
    )
    .await
    .unwrap();
    run(&robot, Subsystem::Gantry, Step::SetHomePosition { write: true })
        .await
        .unwrap();
    body.right.servo(7, Servo::power_cycle).unwrap();
    let there = body.right.servo(7, |servo| servo.position()).unwrap();
    assert!((there - 2048.0).abs() < 1.5, "what is now is home: {there}");
    let config = saved.data["config"].clone();
    run(
        &robot,
        Subsystem::All,
        Step::LoadConfig {
            name: String::new(),
            write: true,
            config,
        },
    )
    .await
    .unwrap();
    let there = body.right.servo(7, |servo| servo.position()).unwrap();
    assert!((there - 1907.0).abs() < 1.5, "and was not before: {there}");
    let strange = Step::LoadConfig {
        name: String::new(),
        write: false,
        config: json!({"kind": "lekiwi"}),
    };
    assert!(run(&robot, Subsystem::All, strange).await.is_err());

    for action in [
        Recovery::Ping,
        Recovery::ResetError,
        Recovery::Reconfigure,
        Recovery::Reboot,
    ] {
        let recover = Step::ServoRecover {
            bus: BusName::Right,
            motor_id: 3,
            action,
        };
        run(&robot, Subsystem::All, recover)
            .await
            .unwrap_or_else(|error| panic!("{action:?}: {error}"));
    }
}

#[tokio::test]
async fn a_wheel_that_gets_its_settings_again_stands() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    body.left
        .servo(7, |servo| servo.set_byte(r::TORQUE_ENABLE, 1))
        .unwrap();
    let recover = Step::ServoRecover {
        bus: BusName::Left,
        motor_id: 7,
        action: Recovery::Reconfigure,
    };
    run(&robot, Subsystem::All, recover).await.unwrap();
    assert!(!body.moves());
    let (mode, torque) = body
        .left
        .servo(7, |servo| (servo.byte(r::MODE), servo.byte(r::TORQUE_ENABLE)))
        .unwrap();
    assert_eq!((mode, torque), (1, 1), "it is a wheel and holds, as before");
}

#[tokio::test]
async fn a_wheel_out_of_the_box_gets_power_as_a_wheel() {
    let body = Body::new();
    body.left.servo(7, |servo| servo.set_byte(r::MODE, 0)).unwrap();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    run(&robot, Subsystem::Base, Step::EnableTorque { enable: true })
        .await
        .unwrap();
    let (mode, position) = body
        .left
        .servo(7, |servo| (servo.byte(r::MODE), servo.position()))
        .unwrap();
    assert_eq!(mode, 1);
    assert!((position - 1907.0).abs() < 1.0, "it went to {position}");
    assert!(!body.moves());
}

#[tokio::test]
async fn a_wheel_is_tested_across_its_zero() {
    let body = Body::new();
    // Ten degrees are 114 steps.
    body.left.servo(7, |servo| servo.push(4090.0 - 1907.0)).unwrap();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let tested = Step::TestMotor {
        bus: BusName::Left,
        motor_id: 7,
        angle: 10.0,
    };
    let tested = run(&robot, Subsystem::Base, tested).await.unwrap();
    let turned = tested.data["turned"].as_f64().unwrap();
    assert!((3.0..90.0).contains(&turned), "{tested:?}");
}

#[tokio::test]
async fn a_test_of_everything_moves_everything() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let action = action(Subsystem::All, Step::SelfTest { verbose: false });
    let control = Control::free();
    let tested = tokio::time::timeout(
        std::time::Duration::from_secs(60),
        robot.execute(&action, &control),
    );
    tested.await.unwrap().unwrap();
    for (line, ids) in [(&body.left, 1..=11), (&body.right, 1..=8)] {
        let frames = line.frames();
        for id in ids {
            let wheel = words(&frames, id, r::GOAL_SPEED)
                .into_iter()
                .any(|speed| speed < 0);
            let goals = words(&frames, id, r::GOAL_POSITION);
            let joint = goals.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 30);
            assert!(wheel || joint, "servo {id} did not move: {goals:?}");
        }
    }
    assert!(!body.moves());
}
