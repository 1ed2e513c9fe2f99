//! What moves for a voice that is gone comes to rest.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::process::DEADLINE;
use crate::support::scene::{assert_still, from_first, monotonic_ns};
use crate::voice::stage::{Stage, moves};

/// Waits for the halt of what moves; returns how long after `since` it came, and checks that nothing moved after it.
#[track_caller]
fn halted_after(stage: &Stage, since: u64) -> Duration {
    let at = stage.scene.until_motors("halt", |motors| {
        let halted = from_first(motors, &["halt"])?;
        halted.first().map(|motor| motor.at)
    });
    stage.scene.until_at_rest();
    let motors = stage.scene.motors();
    assert_still(from_first(&motors, &["halt"]).unwrap());
    Duration::from_nanos(at.saturating_sub(since))
}

/// How soon the motion of a closed socket is cancelled.
const CANCELLED: Duration = Duration::from_millis(250);

/// Waits for the cancel on the bus.
#[track_caller]
fn assert_cancelled_in_time(stage: &mut Stage, since: u64) {
    stage.client.until("a cancel", |frame| {
        (frame["type"] == "ovos.tools.cancel").then_some(())
    });
    let took = Duration::from_nanos(monotonic_ns() - since);
    println!("cancelled {took:?} after the socket was closed");
    assert!(took < CANCELLED, "{took:?}");
}

/// The cancel has its own bound; the testbed and a busy machine are given some more to come to rest.
const CLOSED: Duration = Duration::from_millis(1000);

#[test]
fn motion_ends_with_its_socket() {
    let mut stage = Stage::new(&json!({}));
    let (_door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    line.call("read", "slow", &json!({"seconds": 0.4}));
    stage.scene.until_moving("voice-hume-");
    let since = monotonic_ns();
    line.cut();
    assert_cancelled_in_time(&mut stage, since);
    let took = halted_after(&stage, since);
    println!("halted {took:?} after the socket was cut");
    assert!(took < CLOSED, "{took:?}");

    // The socket comes back. What was asked on the old one is not answered on it, unless it is asked for again: then
    // with what became of it.
    let line = stage.accepted();
    assert_eq!(line.all_so_far("probe"), Vec::<Value>::new());
    let starts = starts(&stage);
    line.call("move", "assemble", &moves("left_arm"));
    assert_eq!(line.result("move")["success"], false);
    line.call("move", "assemble", &moves("left_arm"));
    assert_eq!(line.all_so_far("probe2"), Vec::<Value>::new());
    assert_eq!(starts, self::starts(&stage));
}

fn starts(stage: &Stage) -> usize {
    let motors = stage.scene.motors();
    motors.iter().filter(|motor| motor.kind == "start").count()
}

#[test]
fn motion_ends_with_the_conversation_and_so_does_the_door() {
    let mut stage = Stage::new(&json!({}));
    let (mut door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    stage.scene.until_moving("voice-hume-");
    let since = monotonic_ns();
    line.close(CloseCode::Normal);
    assert_cancelled_in_time(&mut stage, since);
    let took = halted_after(&stage, since);
    assert!(took < CLOSED, "{took:?}");
    assert!(door.end_within(DEADLINE).success(), "{}", door.log());
}

#[test]
fn motion_ends_when_the_service_is_silent() {
    let stage = Stage::new(&json!({}));
    let (_door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    stage.scene.until_moving("voice-hume-");
    let since = monotonic_ns();
    line.freeze();
    let took = halted_after(&stage, since);
    println!("halted {took:?} after the last sign of life");
    assert!(
        (Duration::from_secs(2)..Duration::from_millis(5500)).contains(&took),
        "{took:?}"
    );
}

#[test]
fn motion_goes_on_while_the_service_answers_pings() {
    let stage = Stage::new(&json!({}));
    let (_door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    stage.scene.until_moving("voice-hume-");
    // Longer than a silent service is given.
    let end = Instant::now() + Duration::from_secs(7);
    stage.scene.until_motors("7 s of motion", |motors| {
        assert!(from_first(motors, &["halt"]).is_none(), "it was halted");
        (Instant::now() > end).then_some(())
    });
    assert_eq!(line.all_so_far("probe"), Vec::<Value>::new());
}

#[test]
fn motion_ends_with_a_door_that_is_killed() {
    let stage = Stage::new(&json!({}));
    let (mut door, line) = stage.joined();
    line.call("move", "assemble", &moves("left_arm"));
    stage.scene.until_moving("voice-hume-");
    let since = monotonic_ns();
    door.kill();
    let took = halted_after(&stage, since);
    println!("halted {took:?} after the door was killed");
    assert!(took < Duration::from_millis(1500), "{took:?}");
}
