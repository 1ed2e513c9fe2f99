//! Switches the torque of servos on without a jump or a turn, holds them, and takes it off for a while.

use std::collections::BTreeMap;

use crate::servo::{ServoError, Wire};

/// Steps per second below which a servo stutters.
pub(super) const SLOWEST: u16 = 20;

/// The register value of a servo that goes to positions.
const POSITION: i64 = 0;
/// The register value of a servo that turns at a speed.
const VELOCITY: i64 = 1;

/// Switches the torque of joints on, each at the position where it is, and returns these positions.
///
/// A servo that does not go to positions is refused before any gets torque: a goal's speed would turn it without an end.
pub(super) fn power(wire: &mut Wire, ids: &[u8]) -> Result<BTreeMap<u8, i64>, ServoError> {
    let modes = wire.modes(ids)?;
    let mut positions = BTreeMap::new();
    for (id, (steps, _)) in wire.read_each(ids, "present_position")? {
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
                wire.write(*id, "torque_enable", 1)?;
            }
            _ => {
                // The servo did not answer. A question to it alone returns the reason.
                let mode = wire.read(*id, "operating_mode")?;
                wire.read(*id, "present_position")?;
                if mode != POSITION {
                    return Err(wire.turns(*id, mode));
                }
            }
        }
    }
    Ok(positions)
}

/// Stops the servos with torque at their present position.
pub(super) fn hold(wire: &mut Wire, ids: &[u8]) -> Result<(), ServoError> {
    let mut powered = wire.modes(ids)?;
    powered.retain(|_, mode| mode.torque);
    // Speed 0 stops a wheel; for a joint it means full speed.
    let (joints, turning): (Vec<u8>, Vec<u8>) = powered
        .keys()
        .copied()
        .partition(|id| powered[id].operating == POSITION);
    let zero: Vec<(u8, i64)> = turning.into_iter().map(|id| (id, 0)).collect();
    wire.write_each("goal_speed", &zero)?;
    let positions = wire.read_each(&joints, "present_position")?;
    let goals: Vec<(u8, i64, u16)> = positions
        .into_iter()
        .map(|(id, (steps, _))| (id, steps, SLOWEST))
        .collect();
    wire.go(&goals)
}

/// Puts wheels into velocity mode, at rest and with power.
///
/// All wheels are asked before the first is changed: if one is silent, the ports may be swapped and the other servos
/// may be joints.
pub(super) fn ready(wire: &mut Wire, ids: &[u8]) -> Result<(), ServoError> {
    let mut modes = Vec::with_capacity(ids.len());
    for id in ids {
        modes.push((*id, wire.read(*id, "operating_mode")?));
    }
    for (id, mode) in modes {
        if mode != VELOCITY {
            wire.keep(id, "operating_mode", VELOCITY)?;
        }
        if wire.read(id, "torque_enable")? != 1 {
            wire.write(id, "goal_speed", 0)?;
            wire.write(id, "torque_enable", 1)?;
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
    let was_on = wire.read(id, "torque_enable")? == 1;
    wire.write(id, "torque_enable", 0)?;
    let done = work(wire);
    if was_on && is_wheel {
        ready(wire, &[id])?;
    } else if was_on {
        power(wire, &[id])?;
    }
    done
}
