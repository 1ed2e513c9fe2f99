//! What reaches the servos of Johnny Five, action by action, and what does not.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

#[path = "../support/people.rs"]
mod people;
#[allow(dead_code, reason = "the helpers serve several test programs")]
#[path = "../support/servos.rs"]
mod servos;

mod backends;
mod calibration;
mod followed;
mod hand;
mod movement;
mod rest;
mod trouble;
mod upkeep;

use std::time::Duration;

use feetech_sim::Frame;
use robot::action::{DriveKind, Primitive, Velocity};

pub(crate) fn drive(x: f64, y: f64, turn: f64, milliseconds: u64) -> Primitive {
    Primitive::Drive {
        kind: DriveKind::Move,
        velocity: Velocity { x, y, turn },
        duration: Duration::from_millis(milliseconds),
    }
}

pub(crate) fn to(positions: &[f64]) -> Primitive {
    Primitive::MoveToPosition {
        positions: positions.to_vec(),
        speed: 1.0,
    }
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
