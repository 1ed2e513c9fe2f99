//! What is known when a call is judged. Whatever is not known is absent, and counts as unsafe.

use ovos_toolbox_sdk::prelude::*;

use crate::geo::{Ned, Origin};

/// Who asks for a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// An operator: the service runs with `operator_tools`.
    pub operator: bool,
    /// The service holds the toolbox in emergency stop.
    pub latched: bool,
}

/// What is known of a vehicle, taken at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Whether this vehicle may be commanded at all, or why not.
    pub(crate) trusted: Result<(), String>,
    /// Whether the vehicle is heard.
    pub(crate) link_ok: bool,
    /// Somebody else has taken over, and how.
    pub(crate) overridden: Option<String>,
    /// Only when it is fresh.
    pub(crate) pose: Option<Pose>,
    pub(crate) armed: Option<bool>,
    pub(crate) in_air: Option<bool>,
    pub(crate) landed: Option<Landed>,
    pub(crate) mode: Option<Mode>,
    pub(crate) health: Option<Health>,
    /// Why it would not arm, where it says so.
    pub(crate) checks: Option<Checks>,
    pub(crate) battery_pct: Option<f64>,
    pub(crate) home: Option<Home>,
    /// Metres to the nearest thing ahead, or why it is not known.
    pub(crate) free_ahead_m: Result<f64, String>,
    /// The same for what is behind.
    pub(crate) free_behind_m: Result<f64, String>,
    /// Whether what vision has seen is fresh, or why not.
    pub(crate) vision: Result<(), String>,
    pub(crate) camera: Option<i32>,
    pub(crate) rotation_accum_deg: f64,
    pub(crate) forward_accum_m: f64,
    /// In the whole flight.
    pub(crate) flight_rotation_deg: f64,
    pub(crate) flight_forward_m: f64,
    /// The last words of the vehicle.
    pub(crate) last_text: Option<String>,
    /// The last of them that were a warning or worse.
    pub(crate) last_warning: Option<String>,
    /// Who asks; nobody in particular unless a call does.
    pub(crate) caller: Caller,
}

/// Where the vehicle is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pose {
    pub(crate) ned: Ned,
    pub(crate) velocity: Ned,
    pub(crate) yaw_deg: f64,
    /// Above home.
    pub(crate) alt_m: f64,
    /// What the vehicle calls its height: PX4 corrects what it counts it from in flight.
    pub(crate) relative_m: f64,
    /// Above the sea.
    pub(crate) amsl_m: f64,
    pub(crate) lat: f64,
    pub(crate) lon: f64,
}

impl Pose {
    pub(crate) fn speed(&self) -> f64 {
        crate::geo::length(self.velocity)
    }

    /// Metres to a place, seen from above.
    pub(crate) fn away_from(&self, lat: f64, lon: f64) -> f64 {
        let here = Origin {
            lat: self.lat,
            lon: self.lon,
        };
        let [north, east] = here.local(lat, lon);
        north.hypot(east)
    }
}

/// Where home is in the local frame, and where that frame is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Home {
    pub(crate) origin: Origin,
    pub(crate) north_m: f64,
    pub(crate) east_m: f64,
    /// What heights are counted from, in the local frame.
    pub(crate) down_m: f64,
    /// Where the vehicle stood when it was first heard, north and east: the centre of a round fence. Home moves to where
    /// the vehicle is armed; a fence that moved along could be carried anywhere by landing and taking off.
    pub(crate) centre: [f64; 2],
}

/// What the vehicle says of its sensors.
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

/// What the vehicle says of the checks before arming.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    /// The mode it would arm in, by PX4's name.
    pub(crate) mode: String,
    pub(crate) passed: bool,
    /// Sentences of the vehicle's.
    pub(crate) problems: Vec<String>,
}

impl Health {
    /// What is wrong, by name.
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

/// Where the vehicle says it stands or flies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landed {
    OnGround,
    InAir,
    TakingOff,
    Landing,
}

/// Who or what flies the vehicle, by MAVSDK's numbers.
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

    /// A person with sticks flies.
    pub(crate) fn is_manual(self) -> bool {
        matches!(
            self,
            Self::Manual | Self::Altctl | Self::Posctl | Self::Acro | Self::Stabilized | Self::Rattitude
        )
    }

    /// It stands or hovers and waits.
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
