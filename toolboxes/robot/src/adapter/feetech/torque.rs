//! Switches the torque of servos on without a jump or a turn, holds them, and takes it off for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::servo::{Register, ServoError, State, Wire};

/// Steps per second below which a servo stutters.
pub(super) const SLOWEST: u16 = 20;
/// A joint at its goal is this close to it under a load, in steps: about four degrees.
const NEAR: i64 = 45;
/// How often joints are looked at until they are at rest, and the pause between two looks.
const EASES: usize = 10;
const EASE: Duration = Duration::from_millis(20);

/// The register value of a servo that goes to positions.
const POSITION: i64 = 0;
/// The register value of a servo that turns at a speed.
const VELOCITY: i64 = 1;

/// Switches the torque of joints on, each at the position where it is, and returns these positions.
///
/// A servo that does not go to positions is refused before any gets torque: a goal's speed would turn it without an end.
pub(super) fn power(wire: &mut Wire, ids: &[u8]) -> Result<BTreeMap<u8, i64>, ServoError> {
    wire.check_turns(ids)?;
    let modes = wire.modes(ids)?;
    let mut positions = BTreeMap::new();
    for (id, (steps, _)) in wire.read_each(ids, Register::POSITION)? {
        positions.insert(id, steps);
    }
    if let Some((id, mode)) = modes.iter().find(|(_, mode)| mode.operating != POSITION) {
        return Err(wire.turns(*id, mode.operating));
    }
    for id in ids {
        let on = modes.get(id).map(|mode| mode.torque);
        match (on, positions.get(id)) {
            (Some(true), Some(_)) => {}
            (Some(false), Some(steps)) => {
                // The old goal may be anywhere, and the servo would jump there.
                wire.go(&[(*id, *steps, SLOWEST)])?;
                wire.write(*id, Register::TORQUE, 1)?;
            }
            _ => {
                // The servo did not answer. A question to it alone returns the reason.
                let mode = wire.read(*id, Register::MODE)?;
                wire.read(*id, Register::POSITION)?;
                if mode != POSITION {
                    return Err(wire.turns(*id, mode));
                }
            }
        }
    }
    Ok(positions)
}

/// Ends the motion of joints, whatever they answer, and holds those with torque at their present position. Returns the
/// joints that did not say where they are: they have the smallest speed, where [`Wire::slows`].
///
/// A joint slows down before it is asked: an answer may come long after the joint could have hurt a person.
pub(super) fn hold(wire: &mut Wire, ids: &[u8]) -> Result<Vec<u8>, ServoError> {
    if wire.slows() {
        wire.slow(ids, u16::try_from(wire.slowest()).unwrap_or(SLOWEST))?;
    }
    let states = wire.states(ids)?;
    let goes = |state: &State| state.mode.operating == POSITION;
    let powered = || states.iter().filter(|(_, state)| state.mode.torque);
    // Speed 0 stops a wheel; for a joint it means full speed. An XL servo is none of our wheels: it lets go.
    let turning = powered().filter(|(_, state)| !goes(state));
    let zero: Vec<(u8, i64)> = turning.map(|(id, _)| (*id, 0)).collect();
    let still = if wire.slows() {
        Register::GOAL_SPEED
    } else {
        Register::TORQUE
    };
    wire.write_each(still, &zero)?;
    let joints = powered().filter(|(_, state)| goes(state));
    let goals: Vec<(u8, i64, u16)> = joints.map(|(id, state)| (*id, state.position, SLOWEST)).collect();
    wire.go(&goals)?;
    Ok(ids
        .iter()
        .copied()
        .filter(|id| !states.contains_key(id))
        .collect())
}

/// Gives joints their own greatest speed back, as other programs expect it. A joint that would move by that keeps ours.
pub(super) fn ease(wire: &mut Wire) -> Result<(), ServoError> {
    for round in 0..EASES {
        let ids = wire.sped();
        if ids.is_empty() {
            break;
        }
        if round > 0 {
            wire.exchange().pause(EASE)?;
        }
        let states = wire.states(&ids)?;
        let slowest = wire.slowest();
        let (moving, at_rest): (Vec<u8>, Vec<u8>) =
            states.keys().copied().partition(|id| moves(&states[id], slowest));
        wire.unspeed(&at_rest)?;
        if round == 0 {
            hold(wire, &moving)?;
        }
    }
    Ok(())
}

/// Whether a joint moves, or would at its own greatest speed.
fn moves(state: &State, slowest: i64) -> bool {
    let near = (state.goal - state.position).abs() <= NEAR;
    let creeps = state.goal_speed <= slowest && !near;
    state.mode.torque && (state.speed != 0 || creeps)
}

/// Puts wheels into velocity mode, at rest and with power.
///
/// All wheels are asked before the first is changed: if one is silent, the ports may be swapped and the other servos
/// may be joints.
pub(super) fn ready(wire: &mut Wire, ids: &[u8]) -> Result<(), ServoError> {
    let mut modes = Vec::with_capacity(ids.len());
    for id in ids {
        modes.push((*id, wire.read(*id, Register::MODE)?));
    }
    for (id, mode) in modes {
        if mode != VELOCITY {
            wire.keep(id, Register::MODE, VELOCITY)?;
        }
        if wire.read(id, Register::TORQUE)? != 1 {
            wire.write(id, Register::GOAL_SPEED, 0)?;
            wire.write(id, Register::TORQUE, 1)?;
        }
    }
    Ok(())
}

/// Runs `work` with the torque off and restores the torque without a jump. A wheel stands afterwards.
pub(super) fn with_torque_off<R>(
    wire: &mut Wire,
    id: u8,
    is_wheel: bool,
    work: impl FnOnce(&mut Wire) -> Result<R, ServoError>,
) -> Result<R, ServoError> {
    let was_on = wire.read(id, Register::TORQUE)? == 1;
    wire.write(id, Register::TORQUE, 0)?;
    let done = work(wire);
    if was_on && is_wheel {
        ready(wire, &[id])?;
    } else if was_on {
        power(wire, &[id])?;
    }
    done
}
