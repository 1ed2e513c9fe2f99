//! What reaches the servos of Johnny Five, action by action, and what does not.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

#[allow(dead_code, reason = "the helpers serve several test programs")]
mod support {
    pub(crate) mod servos;
}

use std::time::{Duration, Instant};

use feetech_sim::{Fault, Frame, Line, Servo, register as r};
use robot::action::{BusName, DriveKind, Grip, HitchAction, LiftTarget, Primitive, Recovery, Velocity};
use robot::adapter::johnny5::{Johnny5, Johnny5Config, safe_stop};
use robot::adapter::{ActionError, Adapter, Control};
use robot::config::Estop;
use robot::subsystem::Subsystem;
use serde_json::json;
use support::servos::{Body, Taken, action, robot, robot_of, run, within};

/// A halt takes 50 ms; the rest is for a machine that has other tests to run.
const AT_ONCE: Duration = Duration::from_millis(200);

fn drive(x: f64, y: f64, turn: f64, milliseconds: u64) -> Primitive {
    Primitive::Drive {
        kind: DriveKind::Move,
        velocity: Velocity { x, y, turn },
        duration: Duration::from_millis(milliseconds),
    }
}

fn to(positions: &[f64]) -> Primitive {
    Primitive::MoveToPosition {
        positions: positions.to_vec(),
        speed: 1.0,
    }
}

/// The words written to a register of a servo, signed by bit 15.
fn words(frames: &[Frame], id: u8, address: u8) -> Vec<i32> {
    let signed = |word: u16| match word & 0x8000 {
        0 => i32::from(word),
        _ => -i32::from(word & 0x7FFF),
    };
    frames
        .iter()
        .filter_map(|frame| frame.word(id, address))
        .map(signed)
        .collect()
}

fn bytes(frames: &[Frame], id: u8, address: u8) -> Vec<u8> {
    frames
        .iter()
        .filter_map(|frame| frame.byte(id, address))
        .collect()
}

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
async fn every_primitive_reaches_the_servo_it_is_for() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let rows: Vec<(Subsystem, Primitive, u8, bool, i32)> = vec![
        (
            Subsystem::Lift,
            Primitive::Lift {
                to: LiftTarget::To(120.0),
            },
            10,
            true,
            1638,
        ),
        (
            Subsystem::Lift,
            Primitive::Lift {
                to: LiftTarget::By(-20.0),
            },
            10,
            true,
            1365,
        ),
        (
            Subsystem::Hitch,
            Primitive::Hitch {
                action: HitchAction::Open,
                grip_percent: None,
            },
            11,
            true,
            1593,
        ),
        (
            Subsystem::LeftArm,
            Primitive::Gripper {
                action: Grip::Open,
                force: None,
            },
            6,
            true,
            2503,
        ),
        (
            Subsystem::Gantry,
            Primitive::LookAt {
                target: "left".to_owned(),
                pan: -45.0,
                tilt: 10.0,
                speed: 1.0,
            },
            7,
            false,
            1536,
        ),
    ];
    for (subsystem, primitive, id, left, goal) in rows {
        let what = format!("{primitive:?}");
        let line = if left { &body.left } else { &body.right };
        let _ = line.take_frames();
        run(&robot, subsystem, primitive)
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
        assert!(start.elapsed() >= Duration::from_millis(500));
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
        let far = (
            x.hypot(y) * 0.5,
            measured["forward_m"]
                .as_f64()
                .unwrap()
                .hypot(measured["left_m"].as_f64().unwrap()),
        );
        assert!((far.0 - far.1).abs() < 0.02, "{velocity:?}: {measured}");
    }
}

#[tokio::test]
async fn wheels_that_nobody_keeps_going_stop_by_themselves() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let action = action(Subsystem::Base, drive(0.1, 0.0, 0.0, 60_000));
    let control = Control::free();
    {
        let driving = robot.execute(&action, &control);
        tokio::select! {
            _ = driving => panic!("it drives for a minute"),
            () = async { while !body.moves() { tokio::time::sleep(Duration::from_millis(2)).await } } => {}
        }
    }
    // The future was dropped and nobody halted: as if everything above the bus's thread were gone.
    let start = Instant::now();
    within("rest", || (!body.moves()).then_some(()));
    assert!(
        start.elapsed() < Duration::from_millis(800),
        "after {:?}",
        start.elapsed()
    );
    assert_eq!(words(&body.left.frames(), 9, r::GOAL_SPEED).last(), Some(&0));
}

/// Halts in the middle of a movement of an arm and of the base.
async fn halted(estop: Option<Estop>, emergency: bool) -> (Body, Johnny5, Duration) {
    let body = Body::new();
    let (robot, _) = robot_of(&body.config(), estop);
    robot.connect().await.unwrap();
    let took = {
        let taken = Taken::default();
        let control = taken.control();
        let (arm, base) = (
            action(Subsystem::LeftArm, to(&[100.0, -45.0, 90.0, 45.0, 0.0, 20.0])),
            action(Subsystem::Base, drive(0.1, 0.0, 0.0, 60_000)),
        );
        let both = async { tokio::join!(robot.execute(&arm, &control), robot.execute(&base, &control)) };
        let halt = async {
            let turning = |id| body.left.servo(id, |servo| servo.speed() != 0.0) == Some(true);
            while !(turning(1) && turning(9)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            taken.cancel();
            let start = Instant::now();
            robot.halt(&[Subsystem::All], emergency).unwrap();
            start.elapsed()
        };
        let (ended, took) = tokio::join!(both, halt);
        assert_eq!(ended.0, Err(ActionError::Cancelled));
        assert_eq!(ended.1, Err(ActionError::Cancelled));
        took
    };
    (body, robot, took)
}

#[tokio::test]
async fn a_halt_holds_with_power() {
    for (estop, emergency) in [(None, false), (Some(Estop::Hold), true)] {
        let (body, _robot, took) = halted(estop, emergency).await;
        assert!(took < AT_ONCE, "{took:?}");
        within("rest", || (!body.moves()).then_some(()));
        assert!(body.powered());
        let goals = words(&body.left.frames(), 1, r::GOAL_POSITION);
        assert!(
            goals.last().unwrap() < goals.iter().max().unwrap(),
            "it holds where it was: {goals:?}"
        );
    }
}

#[tokio::test]
async fn an_emergency_lets_go_and_refuses_until_it_is_reset() {
    let (body, robot, took) = halted(None, true).await;
    assert!(took < AT_ONCE, "{took:?}");
    within("rest", || (!body.moves() && !body.powered()).then_some(()));
    let frames = body.left.frames();
    let off = frames
        .iter()
        .position(|frame| frame.byte(1, r::TORQUE_ENABLE) == Some(0))
        .unwrap();
    let zero = frames
        .iter()
        .rposition(|frame| frame.word(9, r::GOAL_SPEED) == Some(0))
        .unwrap();
    assert!(zero < off, "the wheels stop first");
    assert_eq!(
        run(
            &robot,
            Subsystem::Lift,
            Primitive::Lift {
                to: LiftTarget::To(10.0)
            }
        )
        .await,
        Err(ActionError::Stopped)
    );
    assert_eq!(
        run(&robot, Subsystem::Base, drive(0.1, 0.0, 0.0, 100)).await,
        Err(ActionError::Stopped)
    );
    assert_eq!(body.left.frames().len(), frames.len(), "nothing was sent");
    robot.reset().unwrap();
    assert!(!body.powered(), "a reset moves nothing and powers nothing");
    run(
        &robot,
        Subsystem::Lift,
        Primitive::Lift {
            to: LiftTarget::To(130.0),
        },
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn the_halt_of_one_subsystem_leaves_the_others_alone() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let base = action(Subsystem::Base, drive(0.1, 0.0, 0.0, 400));
    let control = Control::free();
    let halt = async {
        while !body.moves() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        robot.halt(&[Subsystem::LeftArm], false).unwrap();
    };
    let (driven, ()) = tokio::join!(robot.execute(&base, &control), halt);
    driven.unwrap();
    let stops = words(&body.left.frames(), 9, r::GOAL_SPEED);
    assert_eq!(
        stops.iter().rev().take_while(|speed| **speed == 0).count(),
        2,
        "only its own end: {stops:?}"
    );
}

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
    let (robot, notices) = robot_of(&body.config(), None);
    robot.connect().await.unwrap();
    notices.wait("degraded", 1);
    let pose = || to(&[0.0, -45.0, 90.0, 45.0, 0.0, 20.0]);
    let degraded = |go_on| Primitive::SetDegraded {
        missing: vec!["left:5".to_owned()],
        go_on,
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
        output.notes[0].contains("did without left_arm wrist_roll"),
        "{output:?}"
    );
    assert!(
        body.left
            .frames()
            .iter()
            .all(|frame| frame.id != 5 && frame.word(5, r::GOAL_POSITION).is_none())
    );
    let wheel = Primitive::SetDegraded {
        missing: vec!["left:8".to_owned()],
        go_on: true,
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
    let (robot, notices) = robot_of(&body.config(), None);
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
        };
        let (driven, ()) = tokio::join!(robot.execute(&base, &control), pull);
        let error = driven.unwrap_err();
        assert!(
            matches!(error, ActionError::NotConnected { .. }),
            "round {round}: {error:?}"
        );
        assert!(error.to_string().contains("check the cable"), "{error}");
        notices.wait("lost", round);
        let refused = run(
            &robot,
            Subsystem::Lift,
            Primitive::Lift {
                to: LiftTarget::To(10.0),
            },
        )
        .await
        .unwrap_err();
        assert!(refused.to_string().contains("cannot open"), "{refused}");
        assert_eq!(robot.state(Subsystem::Base)["connected"], false);
        let _ = body.left.take_frames();
        body.left.plug();
        notices.wait("connected", round + 2);
        // The wheels turned on while nobody could reach them; the first thing the bus hears is their stop.
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
        run(&robot, Subsystem::RightArm, Primitive::PingAll)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_robot_that_is_not_there_says_so_and_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let config: Johnny5Config =
        serde_json::from_value(json!({"layout": "so101", "ports": {"right": path("right")}})).unwrap();
    let (robot, notices) = robot_of(&config, None);
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
async fn lekiwi_drives_on_one_bus() {
    let line = Line::start((1..=9).map(Servo::new)).unwrap();
    let config: Johnny5Config =
        serde_json::from_value(json!({"layout": "lekiwi", "ports": {"right": line.path()}})).unwrap();
    let (robot, _) = robot_of(&config, None);
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
async fn upkeep_reads_and_writes_what_it_says() {
    let body = Body::new();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    body.left
        .servo(2, |servo| servo.set_byte(r::TEMPERATURE, 66))
        .unwrap();

    let scan = Primitive::ScanMotors {
        buses: vec![BusName::Left, BusName::Right],
    };
    let scanned = run(&robot, Subsystem::All, scan).await.unwrap();
    assert_eq!(scanned.message, "19 motors answer");
    assert_eq!(scanned.data["buses"]["left"]["motors"][0]["model"], 777);

    let status = run(
        &robot,
        Subsystem::LeftArm,
        Primitive::MotorStatus { motor_id: Some(2) },
    )
    .await
    .unwrap();
    assert_eq!(status.data["motors"]["left:2"]["temperature"], 66, "{status:?}");
    let strange = run(
        &robot,
        Subsystem::LeftArm,
        Primitive::MotorStatus { motor_id: Some(9) },
    )
    .await;
    assert!(
        strange
            .unwrap_err()
            .to_string()
            .contains("left_arm has no motor 9")
    );

    let health = Primitive::ReadHealth {
        bus: BusName::Left,
        temps: true,
        loads: false,
    };
    let health = run(&robot, Subsystem::All, health).await.unwrap();
    assert!(
        health.message.contains("left:2 (left_arm shoulder) is at 66 °C"),
        "{health:?}"
    );
    let tested = run(&robot, Subsystem::LeftArm, Primitive::SelfTest { verbose: false })
        .await
        .unwrap_err();
    assert!(
        tested.to_string().contains("shoulder (servo 2) is at 66 °C"),
        "{tested}"
    );

    run(
        &robot,
        Subsystem::RightArm,
        Primitive::EnableTorque { enable: true },
    )
    .await
    .unwrap();
    let torque = run(&robot, Subsystem::RightArm, Primitive::CheckTorque)
        .await
        .unwrap();
    assert_eq!(torque.data["all_on"], true, "{torque:?}");
    assert!(!body.moves(), "torque alone moves nothing");
    run(
        &robot,
        Subsystem::RightArm,
        Primitive::EnableTorque { enable: false },
    )
    .await
    .unwrap();
    assert!(!body.powered());

    let tested = Primitive::TestMotor {
        bus: BusName::Right,
        motor_id: 8,
        angle: 10.0,
    };
    let tested = run(&robot, Subsystem::Gantry, tested).await.unwrap();
    assert!(
        (tested.data["turned"].as_f64().unwrap() - 10.0).abs() < 1.5,
        "{tested:?}"
    );
    let tested = Primitive::TestMotor {
        bus: BusName::Left,
        motor_id: 7,
        angle: 10.0,
    };
    run(&robot, Subsystem::Base, tested).await.unwrap();
    run(&robot, Subsystem::Gantry, Primitive::SelfTest { verbose: true })
        .await
        .unwrap();
    for (on, mode) in [
        (Subsystem::LeftArm, "quick"),
        (Subsystem::Gantry, "center_only"),
        (Subsystem::Lift, "home_only"),
        (Subsystem::Base, "full"),
        (Subsystem::RightArm, "full"),
    ] {
        let calibrate = Primitive::Calibrate {
            mode: mode.to_owned(),
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
    let robot = robot(&body);
    robot.connect().await.unwrap();
    let set = |current_id, new_id| Primitive::SetMotorId {
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
        Primitive::SaveConfig {
            subsystems: vec![Subsystem::Gantry],
        },
    )
    .await
    .unwrap();
    run(&robot, Subsystem::Gantry, Primitive::SetHome).await.unwrap();
    body.right.servo(7, Servo::power_cycle).unwrap();
    let there = body.right.servo(7, |servo| servo.position()).unwrap();
    assert!((there - 2048.0).abs() < 1.5, "what is now is home: {there}");
    let config = saved.data["config"].clone();
    run(&robot, Subsystem::All, Primitive::LoadConfig { config })
        .await
        .unwrap();
    let there = body.right.servo(7, |servo| servo.position()).unwrap();
    assert!((there - 1907.0).abs() < 1.5, "and was not before: {there}");
    let strange = Primitive::LoadConfig {
        config: json!({"kind": "lekiwi"}),
    };
    assert!(run(&robot, Subsystem::All, strange).await.is_err());

    for action in [
        Recovery::Ping,
        Recovery::ResetError,
        Recovery::Reconfigure,
        Recovery::Reboot,
    ] {
        let recover = Primitive::ServoRecover {
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
async fn what_it_cannot_do_it_says() {
    let body = Body::new();
    let robot = robot(&body);
    let error = run(&robot, Subsystem::Hitch, Primitive::VerifyCharge)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(error, "not supported by five: a sensor on the charger's contacts");
    let (config, notify) = (body.config(), std::sync::Arc::new(|_| ()));
    let capabilities = robot.capabilities().clone();
    let damp = Johnny5::new("five", &config, capabilities, Some(Estop::Damp), notify)
        .err()
        .unwrap();
    assert!(damp.to_string().contains("estop damp"), "{damp}");
}

#[test]
fn a_safe_stop_needs_nobody() {
    for (estop, powered) in [(None, false), (Some(Estop::Hold), true)] {
        let body = Body::new();
        for id in 7..=9 {
            body.left.servo(id, |servo| {
                servo.set_word(r::GOAL_SPEED, 500);
                servo.set_byte(r::TORQUE_ENABLE, 1);
            });
        }
        body.right.servo(1, |servo| {
            servo.set_word(r::GOAL_SPEED, 100);
            servo.set_byte(r::TORQUE_ENABLE, 1);
        });
        assert!(body.moves());
        safe_stop("five", &body.config(), estop).unwrap();
        within("rest", || (!body.moves()).then_some(()));
        assert_eq!(body.powered(), powered, "{estop:?}");
    }
}
