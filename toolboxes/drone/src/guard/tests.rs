//! Every guard as rows: what is accepted, clamped, rejected, and what happens when a fact is missing.

mod needs;
mod numbers;
mod ways;

use super::fence::Fence;
use super::range::Adjustment;
use super::*;
use crate::geo::Origin;

const HOME: Home = Home {
    origin: Origin {
        lat: 47.397_742,
        lon: 8.545_594,
    },
    north_m: 0.0,
    east_m: 0.0,
    down_m: 0.0,
    amsl_m: 488.0,
    centre: [0.0, 0.0],
};

/// A vehicle that hovers at 5 m, healthy, full, and alone.
fn flying() -> Facts {
    Facts {
        trusted: Ok(()),
        link_ok: true,
        overridden: None,
        kind: Some(2),
        pose: Some(Pose {
            ned: [0.0, 0.0, -5.0],
            velocity: [0.0; 3],
            acceleration: [0.0; 3],
            yaw_deg: 0.0,
            alt_m: 5.0,
            amsl_m: 493.0,
            relative_m: 5.0,
            lat: 47.397_742,
            lon: 8.545_594,
        }),
        armed: Some(true),
        in_air: Some(true),
        landed: Some(Landed::InAir),
        mode: Some(Mode::Hold),
        health: Some(Health {
            gyro: true,
            accel: true,
            mag: true,
            local: true,
            global: true,
            home: true,
            armable: true,
        }),
        checks: None,
        battery_pct: Some(90.0),
        home: Some(HOME),
        free_ahead_m: Ok(10.0),
        free_behind_m: Ok(10.0),
        vision: Ok(()),
        camera: Some(100),
        rotation_accum_deg: 0.0,
        forward_accum_m: 0.0,
        flight_rotation_deg: 0.0,
        flight_forward_m: 0.0,
        last_text: Some("[logger] ./log/1.ulg".to_string()),
        last_warning: Some("Arming denied: Resolve system health failures first".to_string()),
        caller: Caller::default(),
    }
}

/// A healthy vehicle that stands on the ground, disarmed.
fn standing() -> Facts {
    let mut facts = flying();
    facts.armed = Some(false);
    facts.in_air = Some(false);
    facts.landed = Some(Landed::OnGround);
    facts
}

fn armed() -> Facts {
    Facts {
        armed: Some(true),
        ..standing()
    }
}

/// Facts in which a tool may begin.
fn good(tool: &str) -> Facts {
    match tool {
        "arm" | "disarm" => standing(),
        "takeoff" => armed(),
        _ => flying(),
    }
}
