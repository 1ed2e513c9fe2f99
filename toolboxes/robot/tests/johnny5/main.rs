//! What reaches the servos of Johnny Five, action by action, and what does not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed test panics and prints"
)]

#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/catalogue.rs"]
mod catalogue;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/peers.rs"]
mod peers;
#[path = "../support/people.rs"]
mod people;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/servos.rs"]
mod servos;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/truth.rs"]
mod truth;

mod backends;
mod calibration;
mod every_tool;
mod figures;
mod followed;
mod hand;
mod late;
mod movement;
mod points;
mod policy;
mod reach;
mod recogniser;
mod rest;
mod success;
mod table;
mod things;
mod towing;
mod trouble;
mod upkeep;
mod vendor;

use std::time::Duration;

use feetech_sim::Frame;
use robot::action::{Motion, Velocity};
use robot::step::{Step, Where};
use servos::Deed;

pub(crate) fn drive(x: f64, y: f64, turn: f64, milliseconds: u64) -> Deed {
    let step = Step::BaseMove {
        direction: "forward".to_owned(),
        distance: Some(0.1),
        degrees: None,
    };
    let motion = Motion::Drive {
        velocity: Velocity { x, y, turn },
        duration: Duration::from_millis(milliseconds),
    };
    Deed(step, Some(motion))
}

pub(crate) fn to(positions: &[f64]) -> Deed {
    let (positions, speed) = (positions.to_vec(), 1.0);
    let step = Step::MoveToPosition(Where::Angles {
        positions: positions.clone(),
        speed,
    });
    Deed(step, Some(Motion::Joints { positions, speed }))
}

/// The words written to a register of a servo, signed by bit 15.
pub(crate) fn words(frames: &[Frame], id: u8, address: u8) -> Vec<i32> {
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

pub(crate) fn bytes(frames: &[Frame], id: u8, address: u8) -> Vec<u8> {
    frames
        .iter()
        .filter_map(|frame| frame.byte(id, address))
        .collect()
}
