//! Hands that hold something.

use feetech_sim::register as r;
use robot::adapter::ActionError;
use robot::step::{Grip, LiftStep, Step};
use robot::subsystem::Subsystem;

use crate::servos::{Body, Deed, Robot, robot, run};
use crate::{to, words};

const ARM: Subsystem = Subsystem::RightArm;
/// The gripper's step at 20 degrees, where the thing is, and at 80, open.
const THING: f64 = 1820.0;
const OPEN: i32 = 2503;

fn grip(action: Grip, force: Option<f64>) -> Step {
    match force {
        Some(force) => Step::Grasp { action, force },
        None => Step::Gripper { action },
    }
}

fn reach() -> Deed {
    let target = "cup".to_owned();
    Deed(
        Step::Approach { target },
        to(&[0.0, -45.0, 90.0, 45.0, 0.0, 0.0]).1,
    )
}

/// The goals of the gripper since the last look.
fn goals(body: &Body) -> Vec<i32> {
    words(&body.right.take_frames(), 6, r::GOAL_POSITION)
}

async fn open_hand(body: &Body) -> Robot {
    let robot = robot(body);
    robot.connect().await.unwrap();
    run(&robot, ARM, grip(Grip::Open, None)).await.unwrap();
    assert_eq!(goals(body), [1906, OPEN]);
    robot
}

#[tokio::test]
async fn a_hand_that_reaches_stays_as_it_is() {
    let body = Body::new();
    let robot = open_hand(&body).await;
    run(&robot, ARM, reach()).await.unwrap();
    assert_eq!(goals(&body), [0i32; 0]);
    // A pose moves the hand, too.
    run(&robot, ARM, to(&[0.0, -45.0, 90.0, 45.0, 0.0, 0.0]))
        .await
        .unwrap();
    assert_eq!(goals(&body).len(), 1);
}

#[tokio::test]
async fn what_a_hand_holds_it_keeps_until_it_opens() {
    let body = Body::new();
    let robot = open_hand(&body).await;
    body.right.servo(6, |servo| servo.block(THING, f64::INFINITY));
    let held = run(&robot, ARM, grip(Grip::Close, Some(0.5))).await.unwrap();
    assert_eq!(held.data["holding"], true, "{held:?}");
    let _ = goals(&body);
    let home = || to(&[0.0, -45.0, 90.0, 45.0, 0.0, 0.0]);
    run(&robot, ARM, home()).await.unwrap();
    assert_eq!(goals(&body), [0i32; 0], "it presses as it did");
    // Wider than the thing: it lets go.
    run(&robot, ARM, to(&[0.0, -45.0, 90.0, 45.0, 0.0, 80.0]))
        .await
        .unwrap();
    assert_eq!(goals(&body), [OPEN]);
    body.right
        .servo(6, |servo| servo.block(f64::NEG_INFINITY, f64::INFINITY));
    run(&robot, ARM, home()).await.unwrap();
    assert_eq!(goals(&body), [1593]);
}

#[tokio::test]
async fn a_grasp_that_closes_on_nothing_says_so() {
    let body = Body::new();
    let robot = open_hand(&body).await;
    let nothing = run(&robot, ARM, grip(Grip::Close, Some(0.5))).await;
    assert_eq!(
        nothing,
        Err(ActionError::Refused("right_arm has closed on nothing".to_owned()))
    );
    // Without a force the hand need not hold anything.
    run(&robot, ARM, grip(Grip::Open, None)).await.unwrap();
    run(&robot, ARM, grip(Grip::Close, None)).await.unwrap();
}

#[tokio::test]
async fn a_hand_that_its_own_limit_stops_holds_nothing() {
    let body = Body::new();
    // Where LeRobot's calibration typically ends a gripper; the layout would close it at 1593.
    let of_hand = |servo: &mut feetech_sim::Servo| *servo = servo.clone().calibrated(2031, 3476, 0);
    body.right.servo(6, of_hand).unwrap();
    let robot = robot(&body);
    robot.connect().await.unwrap();
    run(&robot, ARM, grip(Grip::Open, None)).await.unwrap();
    let nothing = run(&robot, ARM, grip(Grip::Close, Some(0.5))).await;
    assert_eq!(
        nothing,
        Err(ActionError::Refused("right_arm has closed on nothing".to_owned()))
    );
    assert_eq!(robot.holds(ARM), Some(false));
    let goals = goals(&body);
    assert!(goals.iter().all(|goal| *goal >= 1906), "{goals:?}");
}

#[tokio::test]
async fn a_thing_that_slips_out_on_the_way_up_is_missed() {
    let body = Body::new();
    let robot = open_hand(&body).await;
    body.right.servo(6, |servo| servo.block(THING, f64::INFINITY));
    run(&robot, ARM, grip(Grip::Close, Some(0.5))).await.unwrap();
    assert_eq!(robot.holds(ARM), Some(true));
    body.right
        .servo(6, |servo| servo.block(f64::NEG_INFINITY, f64::INFINITY));
    let closed = |body: &Body| {
        let at = body.right.servo(6, |servo| servo.position()).unwrap();
        (at < 1600.0).then_some(())
    };
    crate::servos::within("empty hand", || closed(&body));
    let step = LiftStep::Hand {
        target: "cup".to_owned(),
        height: 0.15,
    };
    let lifted = Deed(Step::Lift(step), reach().1);
    let lost = run(&robot, ARM, lifted).await;
    assert_eq!(
        lost,
        Err(ActionError::Refused("right_arm has lost what it held".to_owned()))
    );
}
