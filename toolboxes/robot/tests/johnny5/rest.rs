//! Coming to rest: by itself, by a halt, from nothing.

use std::time::{Duration, Instant};

use feetech_sim::register as r;
use robot::action::LiftTarget;
use robot::adapter::Estop;
use robot::adapter::{ActionError, Control};
use robot::subsystem::Subsystem;

use crate::servos::{
    Body, Notices, Robot, Taken, action, halt, lift, made, robot, robot_of, run, safe_stop, within,
};
use crate::{drive, to, words};

/// A halt returns within 50 ms, which the bench `round_trip` times. The rest is for a machine that runs other tests,
/// too.
const AT_ONCE: Duration = Duration::from_millis(200);

#[tokio::test]
async fn wheels_without_a_renewed_lease_stop() {
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
    // The future was dropped and nothing was halted: as if everything above the bus's thread were gone.
    let start = Instant::now();
    within("rest", || (!body.moves()).then_some(()));
    // The lease is 300 ms. The rest is again for the machine, and below the second that a robot may move on.
    assert!(
        start.elapsed() < Duration::from_millis(800),
        "after {:?}",
        start.elapsed()
    );
    assert_eq!(words(&body.left.frames(), 9, r::GOAL_SPEED).last(), Some(&0));
}

/// Halts in the middle of a movement of an arm and of the base.
async fn halted(estop: Option<Estop>, emergency: bool) -> (Body, Robot, Duration) {
    let body = Body::new();
    let (robot, _) = robot_of(&body.section(), estop);
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
            halt(&robot, &[Subsystem::All], emergency);
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
        run(&robot, Subsystem::Lift, lift(LiftTarget::To(10.0))).await,
        Err(ActionError::Stopped)
    );
    assert_eq!(
        run(&robot, Subsystem::Base, drive(0.1, 0.0, 0.0, 100)).await,
        Err(ActionError::Stopped)
    );
    assert_eq!(body.left.frames().len(), frames.len(), "nothing was sent");
    robot.reset().unwrap();
    assert!(!body.powered(), "a reset moves nothing and powers nothing");
    run(&robot, Subsystem::Lift, lift(LiftTarget::To(130.0)))
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
    for _ in 0..5 {
        let _ = body.left.take_frames();
        let halt = async {
            while !body.moves() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            halt(&robot, &[Subsystem::LeftArm], false);
        };
        let (driven, ()) = tokio::join!(robot.execute(&base, &control), halt);
        driven.unwrap();
        let frames = body.left.frames();
        let speeds: Vec<_> = frames
            .iter()
            .filter_map(|frame| Some((frame.at, frame.word(9, r::GOAL_SPEED)?)))
            .collect();
        // The command is renewed every 100 ms. On a busy machine it may be late, and then the lease of 300 ms stops
        // the wheels, too: try again.
        let late = Duration::from_millis(280);
        if speeds
            .windows(2)
            .any(|two| two[0].1 != 0 && two[1].0 - two[0].0 > late)
        {
            continue;
        }
        let stops = speeds.iter().rev().take_while(|(_, speed)| *speed == 0).count();
        assert_eq!(stops, 2, "only its own end: {speeds:?}");
        return;
    }
    panic!("the machine is too busy to renew a lease");
}

#[test]
fn a_safe_stop_needs_no_instance() {
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
        safe_stop(&body.section(), estop).unwrap();
        // The servos may read the last frames after the call has returned.
        within("rest", || {
            (!body.moves() && body.powered() == powered).then_some(())
        });
    }
}

/// The wheels stop before everything else; the parts of a bus follow in the order of the robot's file.
#[tokio::test]
async fn parts_come_to_rest_in_the_order_of_the_file() {
    for (order, first, last) in [
        (r#"order = [["base"], ["hitch"], ["left_arm"]]"#, 11, 1),
        (r#"order = [["base"], ["left_arm"], ["lift", "hitch"]]"#, 1, 11),
        (r#"order = [["left_arm"]]"#, 6, 10),
    ] {
        let body = Body::new();
        let robot = made(
            &body.section(),
            &toml::from_str(order).unwrap(),
            &Notices::default(),
        );
        let robot = robot.unwrap();
        robot.connect().await.unwrap();
        let _ = body.left.take_frames();
        halt(&robot, &[Subsystem::All], true);
        let frames = body.left.frames();
        let at = |what: &dyn Fn(&feetech_sim::Frame) -> bool| frames.iter().position(what).unwrap();
        let off = |id: u8| at(&|frame| frame.byte(id, r::TORQUE_ENABLE) == Some(0));
        let still = at(&|frame| frame.word(7, r::GOAL_SPEED) == Some(0));
        assert!(
            still < off(first) && off(first) < off(last),
            "{order}: {still}, {}, {}",
            off(first),
            off(last)
        );
    }
}
