//! Servos that fail, cables that are pulled, ports that are not there.

use feetech_sim::{Fault, Frame, Line, Servo, register as r};
use robot::action::LiftTarget;
use robot::adapter::Estop;
use robot::adapter::{ActionError, BackendState, Control, Notice};
use robot::capability::BusName;
use robot::step::{Recovery, Step};
use robot::subsystem::Subsystem;
use serde_json::json;
use std::time::Duration;

use crate::servos::{Body, Notices, Robot, action, halt, lift, look, robot, robot_of, run, within};
use crate::{drive, to};

#[tokio::test]
async fn a_fault_names_its_servo() {
    for (fault, expected) in [
        (Fault::Absent, "servo 3 on bus right does not answer"),
        (Fault::Mute, "servo 3 on bus right does not answer"),
        (
            Fault::BadChecksum,
            "servo 3 on bus right answers garbled (checksum error)",
        ),
        (Fault::Noise, "servo 3 on bus right answers garbled"),
        (
            Fault::Error(4),
            "right_arm elbow (servo 3 on bus right) reports overheating",
        ),
        (
            Fault::Error(32),
            "right_arm elbow (servo 3 on bus right) reports overload",
        ),
    ] {
        let body = Body::new();
        let robot = robot(&body);
        robot.connect().await.unwrap();
        body.right.break_servo(3, fault);
        let error = run(
            &robot,
            Subsystem::RightArm,
            to(&[10.0, -45.0, 60.0, 45.0, 0.0, 20.0]),
        )
        .await
        .unwrap_err();
        assert!(error.to_string().contains(expected), "{fault:?}: {error}");
        within("rest", || (!body.moves()).then_some(()));
        body.right.break_servo(3, Fault::None);
        run(
            &robot,
            Subsystem::RightArm,
            to(&[0.0, -45.0, 90.0, 45.0, 0.0, 20.0]),
        )
        .await
        .unwrap_or_else(|error| panic!("after {fault:?}: {error}"));
    }
}

#[tokio::test]
async fn a_missing_servo_is_done_without_when_the_robot_was_told_to() {
    let body = Body::new();
    body.left.break_servo(5, Fault::Absent);
    let (robot, notices) = robot_of(&body.section(), None);
    robot.connect().await.unwrap();
    notices.wait("degraded", 1);
    let pose = || to(&[0.0, -45.0, 90.0, 45.0, 0.0, 20.0]);
    let degraded = |go_on| Step::SetDegraded {
        missing_servos: vec!["left:5".to_owned()],
        continue_anyway: go_on,
    };
    assert!(run(&robot, Subsystem::LeftArm, pose()).await.is_err());
    run(&robot, Subsystem::All, degraded(false)).await.unwrap();
    let refused = run(&robot, Subsystem::LeftArm, pose())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("wrist_roll") && refused.contains("is missing"),
        "{refused}"
    );
    run(&robot, Subsystem::All, degraded(true)).await.unwrap();
    let _ = body.left.take_frames();
    let output = run(&robot, Subsystem::LeftArm, pose()).await.unwrap();
    assert!(
        output.notes[0].contains("left out left_arm wrist_roll"),
        "{output:?}"
    );
    // It is looked for now and then, and told nothing.
    let is_command = |frame: &Frame| {
        frame.writes().iter().any(|(id, ..)| *id == 5) || frame.word(5, r::GOAL_POSITION).is_some()
    };
    assert!(!body.left.frames().iter().any(is_command));
    let wheel = Step::SetDegraded {
        missing_servos: vec!["left:8".to_owned()],
        continue_anyway: true,
    };
    run(&robot, Subsystem::All, wheel).await.unwrap();
    let refused = run(&robot, Subsystem::Base, drive(0.1, 0.0, 0.0, 100))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("all of its wheels"), "{refused}");
}

#[tokio::test]
async fn a_pulled_cable_is_said_and_put_back() {
    let body = Body::new();
    let (robot, notices) = robot_of(&body.section(), None);
    robot.connect().await.unwrap();
    let mut random = fastrand::Rng::with_seed(6);
    for round in 1..=5 {
        let base = action(Subsystem::Base, drive(0.1, 0.0, 0.0, 60_000));
        let control = Control::free();
        let _ = body.left.take_frames();
        let after = random.usize(1..40);
        let pull = async {
            while body.left.frames().len() < after {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            body.left.unplug();
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            driven = robot.execute(&base, &control) => driven.unwrap_err(),
            () = pull => unreachable!("it never ends"),
        };
        assert!(
            matches!(error, ActionError::NotConnected { .. }),
            "round {round}: {error:?}"
        );
        assert!(error.to_string().contains("check the cable"), "{error}");
        notices.wait("lost", round);
        let refused = run(&robot, Subsystem::Lift, lift(LiftTarget::To(10.0)))
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("cannot open"), "{refused}");
        assert_eq!(robot.state(Subsystem::Base)["connected"], false);
        let _ = body.left.take_frames();
        body.left.plug();
        notices.wait("connected", round + 2);
        // The wheels turned on while they could not be reached; the first thing the bus hears is their stop.
        let frames = within("a frame", || {
            let frames = body.left.frames();
            (!frames.is_empty()).then_some(frames)
        });
        for wheel in 7..=9 {
            assert_eq!(
                frames[0].word(wheel, r::GOAL_SPEED),
                Some(0),
                "round {round}: {:?}",
                frames[0]
            );
        }
        assert!(!body.moves());
        run(&robot, Subsystem::RightArm, Step::PingAll {}).await.unwrap();
    }
}

/// Pulls the left cable while the lift goes all the way up, and stops the robot then.
async fn stopped_without_a_cable(body: &Body) -> (Robot, Notices) {
    body.left.servo(10, |servo| servo.push(-1900.0)).unwrap();
    let (robot, notices) = robot_of(&body.section(), None);
    robot.connect().await.unwrap();
    let up = action(Subsystem::Lift, lift(LiftTarget::To(300.0)));
    let control = Control::free();
    let pull = async {
        while !body.left.moves() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        body.left.unplug();
    };
    let (lifted, ()) = tokio::join!(robot.execute(&up, &control), pull);
    assert!(
        matches!(lifted, Err(ActionError::NotConnected { .. })),
        "{lifted:?}"
    );
    let stopped = robot.halt(&[Subsystem::All], true);
    assert!(
        matches!(stopped, Err(ActionError::NotConnected { .. })),
        "{stopped:?}"
    );
    let _ = body.left.take_frames();
    (robot, notices)
}

#[tokio::test]
async fn an_emergency_stop_without_a_cable_is_made_good() {
    let body = Body::new();
    let (_robot, notices) = stopped_without_a_cable(&body).await;
    assert!(body.left.moves(), "it could not be told");
    body.left.plug();
    notices.wait("connected", 3);
    // It is sent by then, and heard a little later.
    let off = |id| {
        let frames = body.left.frames();
        let off = frames
            .iter()
            .any(|frame| frame.byte(id, r::TORQUE_ENABLE) == Some(0));
        off.then_some(())
    };
    for id in 1..=11 {
        within(&format!("end of the power of servo {id}"), || off(id));
    }
    assert!(!body.powered() && !body.moves());
}

#[tokio::test]
async fn a_stop_that_was_lifted_is_not_made_good() {
    let body = Body::new();
    let (robot, notices) = stopped_without_a_cable(&body).await;
    robot.reset().unwrap();
    body.left.plug();
    notices.wait("connected", 3);
    run(&robot, Subsystem::LeftArm, Step::PingAll {}).await.unwrap();
    assert!(body.powered(), "it has its power again, as the operator said");
}

#[tokio::test]
async fn a_robot_that_is_not_there_says_so_and_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let section = json!({"layout": "so101", "ports": {"right": path("right")}});
    let (robot, notices) = robot_of(&section, None);
    let error = robot.connect().await.unwrap_err().to_string();
    assert!(
        error.starts_with("five is not connected: bus right: cannot open"),
        "{error}"
    );
    let _line = Line::start_at(&path("right"), (1..=6).map(Servo::new)).unwrap();
    notices.wait("connected", 1);
    run(&robot, Subsystem::RightArm, to(&[0.0, 0.0, 90.0, 0.0, 0.0, 0.0]))
        .await
        .unwrap();
    assert!(!robot.capabilities().has(Subsystem::Base) && !robot.capabilities().has(Subsystem::LeftArm));
}

#[tokio::test]
async fn a_joint_that_is_set_to_turn_gets_no_goal() {
    let body = Body::new();
    body.right.servo(7, |servo| servo.set_byte(r::MODE, 1)).unwrap();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let look = || look(-45.0, 0.0);
    let error = run(&robot, Subsystem::Gantry, look()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("servo 7 on bus right is in wheel mode (operating mode 1)"),
        "{error}"
    );
    assert!(!body.moves() && !body.powered());
    let recover = Step::ServoRecover {
        bus: BusName::Right,
        motor_id: 7,
        action: Recovery::Reconfigure,
    };
    run(&robot, Subsystem::All, recover).await.unwrap();
    run(&robot, Subsystem::Gantry, look()).await.unwrap();
}

#[tokio::test]
async fn a_joint_that_turns_is_stopped_by_a_halt() {
    let body = Body::new();
    let (robot, _) = robot_of(&body.section(), Some(Estop::Hold));
    robot.connect().await.unwrap();
    for emergency in [false, true] {
        body.right
            .servo(7, |servo| {
                servo.set_byte(r::MODE, 1);
                servo.set_word(r::GOAL_SPEED, 300);
                servo.set_byte(r::TORQUE_ENABLE, 1);
            })
            .unwrap();
        assert!(body.moves());
        halt(&robot, &[Subsystem::All], emergency);
        within("rest", || (!body.moves()).then_some(()));
        let speeds = crate::words(&body.right.frames(), 7, r::GOAL_SPEED);
        assert_eq!(speeds.last(), Some(&0), "{speeds:?}");
        assert!(body.powered(), "it holds");
    }
}

#[tokio::test]
async fn a_base_without_all_of_its_wheels_makes_none_of_them_a_wheel() {
    let body = Body::new();
    // As with swapped ports: 7 and 8 are the head, and there is no 9.
    for id in 7..=8 {
        body.left.servo(id, |servo| servo.set_byte(r::MODE, 0)).unwrap();
    }
    body.left.break_servo(9, Fault::Absent);
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let error = run(&robot, Subsystem::Base, drive(0.1, 0.0, 0.0, 100))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("servo 9 on bus left does not answer"),
        "{error}"
    );
    for id in 7..=8 {
        assert_eq!(
            body.left.servo(id, |servo| servo.byte(r::MODE)),
            Some(0),
            "servo {id}"
        );
    }
    assert!(!body.moves());
}

#[tokio::test]
async fn a_late_answer_is_not_taken_for_the_next_one_and_ends_no_movement() {
    let body = Body::new();
    let mut section = body.section();
    section["answer_ms"] = json!(60);
    let (robot, _) = robot_of(&section, None);
    robot.connect().await.unwrap();
    let look = |pan: f64| look(pan, 0.0);
    for (round, late) in (1..).zip([1, 2, 2]) {
        // Twice in a row, each after its time and before the next question's.
        body.right.delay(late, Duration::from_millis(90));
        let pan = if round % 2 == 0 { 20.0 } else { -20.0 };
        run(&robot, Subsystem::Gantry, look(pan))
            .await
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        let there = body.right.servo(7, |servo| servo.position()).unwrap();
        let wanted = 2048.0 + pan * 4096.0 / 360.0;
        assert!(
            (there - wanted).abs() < 13.0,
            "round {round}: {there}, expected {wanted}"
        );
        body.right.delay(1, Duration::from_millis(90));
        let status = run(&robot, Subsystem::Gantry, Step::MotorStatus { motor_id: Some(8) })
            .await
            .unwrap();
        let motor = &status.data["motors"]["right:8"];
        assert_eq!(
            (&motor["temperature"], &motor["torque"], &motor["voltage"]),
            (&json!(31), &json!(true), &json!(7.4)),
            "{status:?}"
        );
    }
}

#[tokio::test]
async fn one_bus_that_is_away_does_not_hide_the_other() {
    let body = Body::new();
    let (robot, notices) = robot_of(&body.section(), None);
    robot.connect().await.unwrap();
    let last = || match notices
        .all()
        .into_iter()
        .rev()
        .find(|notice| matches!(notice, Notice::Backend { .. }))
    {
        Some(Notice::Backend { state, reason }) => (state, reason),
        other => panic!("{other:?}"),
    };
    let (state, reason) = last();
    assert!(
        state == BackendState::Connected && reason.contains("bus left: ") && reason.contains("bus right: "),
        "{state:?}: {reason}"
    );
    body.left.unplug();
    notices.wait("lost", 1);
    let (state, reason) = last();
    assert!(
        state == BackendState::Lost && reason.contains("bus left: ") && reason.contains("bus right: "),
        "{state:?}: {reason}"
    );
}

#[tokio::test]
async fn what_only_writes_lets_no_arm_fall() {
    let body = Body::new();
    let mut section = body.section();
    section["allow_calibration_write"] = json!(true);
    let (robot, _) = robot_of(&section, None);
    robot.connect().await.unwrap();
    let saved = Step::SaveConfig {
        name: String::new(),
        subsystems: vec![Subsystem::RightArm],
    };
    let saved = run(&robot, Subsystem::All, saved).await.unwrap();
    let power = Step::EnableTorque { enable: true };
    run(&robot, Subsystem::RightArm, power).await.unwrap();
    let _ = body.right.take_frames();
    let recover = |action| Step::ServoRecover {
        bus: BusName::Right,
        motor_id: 3,
        action,
    };
    for (on, step) in [
        (Subsystem::All, recover(Recovery::ResetError)),
        (Subsystem::All, recover(Recovery::Reboot)),
        (Subsystem::All, recover(Recovery::Reconfigure)),
        (Subsystem::RightArm, Step::SetHomePosition { write: true }),
        (
            Subsystem::All,
            Step::LoadConfig {
                name: String::new(),
                write: true,
                config: saved.data["config"].clone(),
            },
        ),
        (
            Subsystem::All,
            Step::SetMotorId {
                bus: BusName::Right,
                current_id: 3,
                new_id: 12,
            },
        ),
    ] {
        let refused = run(&robot, on, step.clone()).await.unwrap_err().to_string();
        assert!(refused.contains("would let go"), "{step:?}: {refused}");
    }
    for id in 1..=6 {
        assert_eq!(
            crate::bytes(&body.right.frames(), id, r::TORQUE_ENABLE),
            [0u8; 0],
            "servo {id}"
        );
    }
    run(&robot, Subsystem::All, recover(Recovery::Ping))
        .await
        .unwrap();
}

/// The adapter at the cable has power of its own: its port stays open when the servos lose theirs.
#[tokio::test]
async fn servos_that_fall_silent_behind_an_open_port_are_away_until_one_answers() {
    let body = Body::new();
    let mut section = body.section();
    // Short enough that silence is soon noticed, and longer than a busy machine holds an answer back.
    section["answer_ms"] = json!(150);
    let (robot, notices) = robot_of(&section, None);
    robot.connect().await.unwrap();
    let all = |fault: Fault| {
        (1..=11).for_each(|id| body.left.break_servo(id, fault));
        (1..=8).for_each(|id| body.right.break_servo(id, fault));
    };
    let last = || {
        let newest = notices.all().into_iter().rev();
        let mut backends = newest.filter_map(|notice| match notice {
            Notice::Backend { state, reason } => Some((state, reason)),
            _ => None,
        });
        backends.next().unwrap()
    };
    let connected = |robot: &Robot| robot.state(Subsystem::All)["connected"].clone();
    within("a robot that is there", || {
        (last().0 == BackendState::Connected).then_some(())
    });
    // Noticed by the bus itself, and then by a call.
    for asked in [false, true] {
        all(Fault::Absent);
        if asked {
            assert!(
                run(
                    &robot,
                    Subsystem::RightArm,
                    to(&[0.0, -45.0, 90.0, 45.0, 0.0, 20.0])
                )
                .await
                .is_err()
            );
        }
        within("word that it is silent", || {
            (last().0 == BackendState::Lost).then_some(())
        });
        within("word of both buses", || {
            last().1.contains("bus left").then_some(())
        });
        within("word of both buses", || {
            (last().1.matches("the robot is silent: no servo answers").count() == 2).then_some(())
        });
        assert_eq!(connected(&robot), json!(false));
        // One servo is enough.
        body.left.break_servo(9, Fault::None);
        within("a bus that answers", || {
            (last().1.matches("the robot is silent").count() == 1).then_some(())
        });
        assert_eq!(last().0, BackendState::Lost, "{:?}", last());
        all(Fault::None);
        within("a robot that is back", || {
            (last().0 == BackendState::Connected).then_some(())
        });
        assert_eq!(connected(&robot), json!(true));
        run(
            &robot,
            Subsystem::RightArm,
            to(&[0.0, -45.0, 90.0, 45.0, 0.0, 20.0]),
        )
        .await
        .unwrap();
    }
}
