//! The facts on which a call is judged. An unknown fact is absent and counts as unsafe.

use ovos_toolbox_sdk::prelude::*;

use crate::geo::{Ned, Origin};

/// The caller of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Whether it is an operator: the service runs with `operator_tools`.
    pub operator: bool,
    /// Whether the service holds the toolbox in emergency stop.
    pub latched: bool,
}

/// Snapshot of what is known of a vehicle.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Whether this vehicle may be commanded at all, or why not.
    pub(crate) trusted: Result<(), String>,
    /// Whether telemetry arrives.
    pub(crate) link_ok: bool,
    /// How the vehicle was taken from us, if it was.
    pub(crate) overridden: Option<OverrideCause>,
    /// Its type in MAVLink (`MAV_TYPE`), once it was reported.
    pub(crate) kind: Option<u64>,
    /// Absent when it is stale.
    pub(crate) pose: Option<Pose>,
    pub(crate) armed: Option<bool>,
    pub(crate) in_air: Option<bool>,
    pub(crate) landed: Option<Landed>,
    pub(crate) mode: Option<Mode>,
    pub(crate) health: Option<Health>,
    /// The vehicle's arming checks, if it reports them.
    pub(crate) checks: Option<Checks>,
    pub(crate) battery_pct: Option<f64>,
    pub(crate) home: Option<Home>,
    /// Metres to the nearest obstacle ahead, or why that is unknown.
    pub(crate) free_ahead_m: Result<f64, String>,
    /// Metres to the nearest obstacle behind the vehicle, or why that is unknown.
    pub(crate) free_behind_m: Result<f64, String>,
    /// Whether the vision data is fresh, or why not.
    pub(crate) vision: Result<(), String>,
    pub(crate) camera: Option<i32>,
    pub(crate) rotation_accum_deg: f64,
    pub(crate) forward_accum_m: f64,
    /// Totals of the whole flight.
    pub(crate) flight_rotation_deg: f64,
    pub(crate) flight_forward_m: f64,
    /// The vehicle's last status text.
    pub(crate) last_text: Option<String>,
    /// Its last status text of severity warning or worse.
    pub(crate) last_warning: Option<String>,
    /// The caller; default outside a call.
    pub(crate) caller: Caller,
}

/// How the vehicle was taken from us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverrideCause {
    pub(crate) how: String,
    /// Whether the autopilot did it by itself; otherwise a pilot or a ground station did.
    pub(crate) failsafe: bool,
}

impl OverrideCause {
    /// Its code in answers and its kind as an event.
    pub(crate) fn code(&self) -> &'static str {
        if self.failsafe { FAILSAFE } else { OVERRIDE }
    }
}

const FAILSAFE: &str = "failsafe";
const OVERRIDE: &str = "pilot_override";

/// Position, velocity and heading of the vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pose {
    pub(crate) ned: Ned,
    pub(crate) velocity: Ned,
    /// Metres per second squared, over the last 0.4 s.
    pub(crate) acceleration: Ned,
    pub(crate) yaw_deg: f64,
    /// Height above home, metres.
    pub(crate) alt_m: f64,
    /// Height as the vehicle reports it, metres; PX4 corrects its reference in flight.
    pub(crate) relative_m: f64,
    /// Height above sea level, metres.
    pub(crate) amsl_m: f64,
    pub(crate) lat: f64,
    pub(crate) lon: f64,
}

impl Pose {
    pub(crate) fn speed(&self) -> f64 {
        crate::geo::length(self.velocity)
    }

    /// The acceleration in the direction of the velocity, metres per second squared; negative while it slows down.
    pub(crate) fn speeds_up(&self) -> f64 {
        let speed = self.speed().max(0.01);
        let along = |axis: usize| self.velocity[axis] * self.acceleration[axis] / speed;
        along(0) + along(1) + along(2)
    }

    /// Horizontal distance to a position, metres.
    pub(crate) fn away_from(&self, lat: f64, lon: f64) -> f64 {
        let here = Origin {
            lat: self.lat,
            lon: self.lon,
        };
        let [north, east] = here.local(lat, lon);
        north.hypot(east)
    }
}

/// Home in the local frame, and the origin of that frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Home {
    pub(crate) origin: Origin,
    pub(crate) north_m: f64,
    pub(crate) east_m: f64,
    /// The reference of heights in the local frame.
    pub(crate) down_m: f64,
    /// Its height above sea level, metres.
    pub(crate) amsl_m: f64,
    /// Where the vehicle was first seen, north and east: the centre of a round fence. Home moves to each place where
    /// the vehicle is armed; a fence that moved with it could be carried anywhere by repeated landings and take-offs.
    pub(crate) centre: [f64; 2],
}

/// The vehicle's report on its sensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) gyro: bool,
    pub(crate) accel: bool,
    pub(crate) mag: bool,
    pub(crate) local: bool,
    pub(crate) global: bool,
    pub(crate) home: bool,
    pub(crate) armable: bool,
}

/// The vehicle's report on its arming checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    /// The mode that it would arm in, by PX4's name.
    pub(crate) mode: String,
    pub(crate) passed: bool,
    /// The problems, in the vehicle's own sentences.
    pub(crate) problems: Vec<String>,
}

impl Health {
    /// The names of the sensors and estimates that are not healthy.
    pub(crate) fn missing(self) -> Vec<&'static str> {
        [
            (self.gyro, "gyrometer"),
            (self.accel, "accelerometer"),
            (self.mag, "magnetometer"),
            (self.local, "local position (EKF)"),
            (self.global, "global position (GPS)"),
            (self.home, "home position"),
            (self.armable, "armable"),
        ]
        .into_iter()
        .filter_map(|(ok, name)| (!ok).then_some(name))
        .collect()
    }
}

/// The vehicle's landed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landed {
    OnGround,
    InAir,
    TakingOff,
    Landing,
}

/// The flight mode, by MAVSDK's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Mode {
    Unknown,
    Ready,
    Takeoff,
    Hold,
    Mission,
    ReturnToLaunch,
    Land,
    Offboard,
    FollowMe,
    Manual,
    Altctl,
    Posctl,
    Acro,
    Stabilized,
    Rattitude,
}

impl Mode {
    const ALL: [Self; 15] = [
        Self::Unknown,
        Self::Ready,
        Self::Takeoff,
        Self::Hold,
        Self::Mission,
        Self::ReturnToLaunch,
        Self::Land,
        Self::Offboard,
        Self::FollowMe,
        Self::Manual,
        Self::Altctl,
        Self::Posctl,
        Self::Acro,
        Self::Stabilized,
        Self::Rattitude,
    ];

    pub(crate) fn of(number: i32) -> Self {
        usize::try_from(number)
            .ok()
            .and_then(|index| Self::ALL.get(index))
            .copied()
            .unwrap_or(Self::Unknown)
    }

    /// The mode with this number in PX4's heartbeats: the main mode in bits 16 to 23, the sub mode above them.
    pub(crate) fn of_px4(number: u64) -> Self {
        match (number >> 16 & 0xff, number >> 24 & 0xff) {
            (1, _) => Self::Manual,
            (2, _) => Self::Altctl,
            // Orbit has the main mode of position control, and no sticks.
            (3, sub) if sub != 1 => Self::Posctl,
            (4, 1) => Self::Ready,
            (4, 2) => Self::Takeoff,
            (4, 3) => Self::Hold,
            (4, 4) => Self::Mission,
            (4, 5) => Self::ReturnToLaunch,
            (4, 6) => Self::Land,
            (4, 8) => Self::FollowMe,
            (5, _) => Self::Acro,
            (6, _) => Self::Offboard,
            (7, _) => Self::Stabilized,
            (8, _) => Self::Rattitude,
            _ => Self::Unknown,
        }
    }

    /// PX4's main mode, for the modes in which a pilot flies with sticks.
    pub(crate) fn manual_number(self) -> Option<u8> {
        Some(match self {
            Self::Manual => 1,
            Self::Altctl => 2,
            Self::Posctl => 3,
            Self::Acro => 5,
            Self::Stabilized => 7,
            Self::Rattitude => 8,
            _ => return None,
        })
    }

    /// Whether a pilot flies with sticks.
    pub(crate) fn is_manual(self) -> bool {
        matches!(
            self,
            Self::Manual | Self::Altctl | Self::Posctl | Self::Acro | Self::Stabilized | Self::Rattitude
        )
    }

    /// Whether the vehicle stands or hovers and waits for a command.
    pub(crate) fn is_calm(self) -> bool {
        matches!(self, Self::Hold | Self::Ready)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Ready => "READY",
            Self::Takeoff => "TAKEOFF",
            Self::Hold => "HOLD",
            Self::Mission => "MISSION",
            Self::ReturnToLaunch => "RETURN_TO_LAUNCH",
            Self::Land => "LAND",
            Self::Offboard => "OFFBOARD",
            Self::FollowMe => "FOLLOW_ME",
            Self::Manual => "MANUAL",
            Self::Altctl => "ALTCTL",
            Self::Posctl => "POSCTL",
            Self::Acro => "ACRO",
            Self::Stabilized => "STABILIZED",
            Self::Rattitude => "RATTITUDE",
        }
    }
}
