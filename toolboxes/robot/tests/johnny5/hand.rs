//! What a hand does with what it holds.

use feetech_sim::register as r;
use robot::action::{Grip, Primitive, Stage};
use robot::adapter::johnny5::Johnny5;
use robot::adapter::{ActionError, Adapter};
use robot::subsystem::Subsystem;

use crate::servos::{Body, robot, run};
use crate::{to, words};

const ARM: Subsystem = Subsystem::RightArm;
/// The gripper's step at 20 degrees, where the thing is, and at 80, open.
const THING: f64 = 1820.0;
const OPEN: i32 = 2503;

fn grip(action: Grip, force: Option<f64>) -> Primitive {
    Primitive::Gripper { action, force }
}

fn reach() -> Primitive {
    Primitive::Reach {
        target: "cup".to_owned(),
        stage: Stage::At,
        positions: vec![0.0, -45.0, 90.0, 45.0, 0.0, 0.0],
        speed: 1.0,
    }
}

/// The goals of the gripper since the last look.
fn goals(body: &Body) -> Vec<i32> {
    words(&body.right.take_frames(), 6, r::GOAL_POSITION)
}

async fn open_hand(body: &Body) -> Johnny5 {
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
    // A pose has a say in it.
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
    // Nobody said that there is something.
    run(&robot, ARM, grip(Grip::Open, None)).await.unwrap();
    run(&robot, ARM, grip(Grip::Close, None)).await.unwrap();
}
