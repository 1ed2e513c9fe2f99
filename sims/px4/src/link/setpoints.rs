//! The setpoints of offboard mode: which parts of a message count, and in which frame.

use mavlink::dialects::common::{SET_POSITION_TARGET_GLOBAL_INT_DATA, SET_POSITION_TARGET_LOCAL_NED_DATA};

use crate::vehicle::{Setpoint, Vehicle};

/// Bits of a setpoint's type mask: which parts are ignored.
mod ignore {
    pub(super) const POSITION: u16 = 0x007;
    pub(super) const VELOCITY: u16 = 0x038;
    pub(super) const YAW: u16 = 0x400;
    pub(super) const YAW_RATE: u16 = 0x800;
}

/// Frames relative to the body: forward, right, down.
const BODY_FRAMES: [u32; 3] = [8, 9, 12];

pub(super) fn local_setpoint(vehicle: &mut Vehicle, t: &SET_POSITION_TARGET_LOCAL_NED_DATA) {
    let mask = t.type_mask.bits();
    let body = BODY_FRAMES.contains(&(t.coordinate_frame as u32));
    let velocity = [f64::from(t.vx), f64::from(t.vy), f64::from(t.vz)];
    let place = [f64::from(t.x), f64::from(t.y), f64::from(t.z)];
    let yaw = (mask & ignore::YAW == 0 && t.yaw.is_finite()).then(|| f64::from(t.yaw));
    let yaw_rate = if mask & ignore::YAW_RATE == 0 && t.yaw_rate.is_finite() {
        f64::from(t.yaw_rate)
    } else {
        0.0
    };
    let moves = mask & ignore::VELOCITY == 0;
    let setpoint = if mask & ignore::POSITION == 0 {
        Setpoint::Position {
            place,
            velocity: moves.then_some(velocity),
            yaw,
        }
    } else if !moves {
        return;
    } else if body {
        Setpoint::BodyVelocity { velocity, yaw_rate }
    } else {
        Setpoint::Velocity {
            velocity,
            yaw,
            yaw_rate,
        }
    };
    take_finite(vehicle, setpoint);
}

pub(super) fn global_setpoint(vehicle: &mut Vehicle, t: &SET_POSITION_TARGET_GLOBAL_INT_DATA) {
    if t.type_mask.bits() & ignore::POSITION != 0 {
        return;
    }
    let (north, east) = vehicle
        .home
        .to_local(f64::from(t.lat_int) / 1e7, f64::from(t.lon_int) / 1e7);
    // Frames 0 and 5 carry altitudes above sea level, the others above home.
    let above_sea = matches!(t.coordinate_frame as u32, 0 | 5);
    let height = if above_sea {
        f64::from(t.alt) - vehicle.home.alt
    } else {
        f64::from(t.alt) + vehicle.home_amsl() - vehicle.home.alt
    };
    let yaw = (t.type_mask.bits() & ignore::YAW == 0 && t.yaw.is_finite()).then(|| f64::from(t.yaw));
    let place = [north, east, -height];
    take_finite(
        vehicle,
        Setpoint::Position {
            place,
            velocity: None,
            yaw,
        },
    );
}

/// PX4 drops a setpoint that contains NaN or infinity.
fn take_finite(vehicle: &mut Vehicle, setpoint: Setpoint) {
    let numbers = match setpoint {
        Setpoint::Position { place, .. } => place,
        Setpoint::Velocity { velocity, .. } | Setpoint::BodyVelocity { velocity, .. } => velocity,
    };
    if numbers.iter().all(|number| number.is_finite()) {
        vehicle.take_setpoint(setpoint);
    }
}
