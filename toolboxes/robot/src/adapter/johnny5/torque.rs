//! The torque of servos: on without a jump, held where they are, off for a while.

use std::collections::BTreeMap;

use crate::servo::{ServoError, Wire};

/// Steps per second below which a servo stutters.
pub(super) const SLOWEST: u16 = 20;

/// Switches the torque of servos on, each at the position where it is, and returns these positions.
pub(super) fn power(wire: &mut Wire, ids: &[u8]) -> Result<BTreeMap<u8, i64>, ServoError> {
    let torque = wire.read_each(ids, "torque_enable")?;
    let mut positions = BTreeMap::new();
    for (id, (steps, _)) in wire.read_each(ids, "present_position")? {
        positions.insert(id, steps);
    }
    for id in ids {
        let on = torque.get(id).map(|(on, _)| *on == 1);
        match (on, positions.get(id)) {
            (Some(true), Some(_)) => {}
            (Some(false), Some(steps)) => {
                // Its goal may be anywhere: without this it would jump there.
                wire.go(&[(*id, *steps, SLOWEST)])?;
                wire.write(*id, "torque_enable", 1)?;
            }
            _ => {
                // It did not answer: asked alone, it says why.
                wire.read(*id, "present_position")?;
            }
        }
    }
    Ok(positions)
}

/// Stops servos where they are, with power: those whose torque is on.
pub(super) fn hold(wire: &mut Wire, ids: &[u8]) -> Result<(), ServoError> {
    let torque = wire.read_each(ids, "torque_enable")?;
    let powered: Vec<u8> = ids
        .iter()
        .copied()
        .filter(|id| torque.get(id).is_some_and(|(on, _)| *on == 1))
        .collect();
    let positions = wire.read_each(&powered, "present_position")?;
    let goals: Vec<(u8, i64, u16)> = positions
        .into_iter()
        .map(|(id, (steps, _))| (id, steps, SLOWEST))
        .collect();
    wire.go(&goals)
}

/// A wheel in velocity mode, at rest and with power.
pub(super) fn ready(wire: &mut Wire, id: u8) -> Result<(), ServoError> {
    if wire.read(id, "operating_mode")? != 1 {
        wire.keep(id, "operating_mode", 1)?;
    }
    if wire.read(id, "torque_enable")? != 1 {
        wire.write(id, "goal_speed", 0)?;
        wire.write(id, "torque_enable", 1)?;
    }
    Ok(())
}

/// Runs `work`, which needs the torque off, and brings the torque back as it was, without a jump.
pub(super) fn with_torque_off<R>(
    wire: &mut Wire,
    id: u8,
    work: impl FnOnce(&mut Wire) -> Result<R, ServoError>,
) -> Result<R, ServoError> {
    let was_on = wire.read(id, "torque_enable")? == 1;
    wire.write(id, "torque_enable", 0)?;
    let done = work(wire);
    if was_on {
        power(wire, &[id])?;
    }
    done
}
