//! The arming checks: which fail, in which modes, and their PX4 names.
//!
//! Names, sentences, severities and components are those of PX4's `HealthAndArmingChecks`. Start with
//! [`Vehicle::failing_checks`].

use super::notice::severity;
use super::state::Vehicle;
use crate::{mode::Mode, quirks::Quirk};

/// Time after boot until the estimator is ready, seconds.
const BOOT_S: f64 = 3.0;

/// A check that can fail.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// PX4's name, from which its event id follows.
    pub name: &'static str,
    /// PX4's sentence; `{3}` stands for the sensor's index.
    pub message: &'static str,
    /// MAVLink's severity. PX4 refuses to arm for some checks at level information.
    pub severity: u8,
    /// PX4's number of the failing component, one of [`PARTS`].
    pub part: u8,
    /// True if the check means an unhealthy component, false if it means a missing requirement of arming.
    pub health: bool,
    /// The modes that it concerns; `None`: all.
    pub modes: Option<&'static [Mode]>,
    /// What it prevents in those modes.
    pub bars: Bars,
}

/// What a failing check prevents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bars {
    /// Nothing: a warning.
    Nothing,
    /// Arming.
    Arming,
    /// Arming in the mode, and flying in it.
    Flight,
}

/// PX4's number, name and label of each component.
pub const PARTS: &[(u8, &str, &str)] = &[
    (0, "none", "None"),
    (3, "gps", "GPS"),
    (11, "battery", "Battery"),
    (17, "local_position_estimate", "Local position estimate"),
    (20, "system", "System"),
    (27, "magnetometer", "Magnetometer"),
    (28, "accel", "Accelerometer"),
    (29, "gyro", "Gyroscope"),
];

const BATTERY: u8 = 11;
const ESTIMATE: u8 = 17;
const SYSTEM: u8 = 20;

const fn refusal(name: &'static str, message: &'static str, severity: u8, part: u8) -> Check {
    Check {
        name,
        message,
        severity,
        part,
        health: false,
        modes: None,
        bars: Bars::Arming,
    }
}

const fn sensor(name: &'static str, message: &'static str, part: u8) -> Check {
    Check {
        health: true,
        ..refusal(name, message, severity::ERROR, part)
    }
}

const fn of_mode(name: &'static str, message: &'static str, severity: u8, modes: &'static [Mode]) -> Check {
    Check {
        modes: Some(modes),
        bars: Bars::Flight,
        ..refusal(name, message, severity, SYSTEM)
    }
}

static ESTIMATOR: Check = refusal(
    "check_estimator_missing_data",
    "Waiting for estimator to initialize",
    severity::INFO,
    ESTIMATE,
);
static GYRO: Check = sensor("check_gyro_no_data", "No valid data from Gyro {3}", 29);
static ACCEL: Check = sensor("check_accel_no_data", "No valid data from Accelerometer {3}", 28);
static MAG: Check = sensor("check_mag_no_data", "No valid data from Compass {3}", 27);
static POSITION: Check = Check {
    bars: Bars::Flight,
    ..refusal(
        "check_modes_global_pos",
        "No valid global position estimate",
        severity::ERROR,
        SYSTEM,
    )
};
static HOME: Check = Check {
    bars: Bars::Flight,
    ..refusal(
        "check_modes_home_position",
        "Home position not set",
        severity::INFO,
        SYSTEM,
    )
};
static LOW: Check = Check {
    bars: Bars::Nothing,
    ..refusal("check_battery_low", "Low battery", severity::WARNING, BATTERY)
};
static CRITICAL: Check = refusal(
    "check_battery_critical",
    "Critical battery",
    severity::CRITICAL,
    BATTERY,
);
static EMERGENCY: Check = refusal(
    "check_battery_emergency",
    "Emergency battery level",
    severity::CRITICAL,
    BATTERY,
);
static OFFBOARD: Check = of_mode(
    "check_modes_offboard_signal",
    "No offboard signal",
    severity::ERROR,
    &[Mode::Offboard],
);
static MISSION: Check = of_mode(
    "check_modes_mission",
    "No valid mission available",
    severity::INFO,
    &[Mode::Mission],
);
static MODE: Check = Check {
    bars: Bars::Arming,
    ..of_mode(
        "check_modes_cannot_takeoff",
        "Mode not suitable for arming",
        severity::INFO,
        &[Mode::Return, Mode::Land],
    )
};

impl Check {
    /// All checks.
    pub const ALL: [&'static Self; 12] = [
        &ESTIMATOR, &GYRO, &ACCEL, &MAG, &POSITION, &HOME, &LOW, &CRITICAL, &EMERGENCY, &OFFBOARD, &MISSION,
        &MODE,
    ];

    /// Whether it concerns this mode.
    #[must_use]
    pub fn concerns(&self, mode: Mode) -> bool {
        self.modes.is_none_or(|modes| modes.contains(&mode))
    }

    /// Whether its sentence contains the sensor's index, which is 0.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.message.contains("{3}")
    }

    /// The sentence with the sensor's index filled in.
    #[must_use]
    pub fn sentence(&self) -> String {
        self.message.replace("{3}", "0")
    }
}

impl Vehicle {
    /// The checks that fail now, over all modes.
    #[must_use]
    pub fn failing_checks(&self) -> Vec<&'static Check> {
        let health = self.health;
        let booting = self.has(Quirk::ArmingDeniedAfterBoot) && self.time < BOOT_S;
        let at_most = |name: &str| self.battery_pct <= self.params.float(name) * 100.0;
        let (low, critical, emergency) = (
            at_most("BAT_LOW_THR"),
            at_most("BAT_CRIT_THR"),
            at_most("BAT_EMERGEN_THR"),
        );
        let fails = [
            (booting, &ESTIMATOR),
            (!health.gyro, &GYRO),
            (!health.accel, &ACCEL),
            (!health.mag, &MAG),
            (!health.gps, &POSITION),
            (!health.home, &HOME),
            (low && !critical, &LOW),
            (critical && !emergency, &CRITICAL),
            (critical && emergency, &EMERGENCY),
            (!self.setpoint_is_fresh(), &OFFBOARD),
            (self.mission.items.is_empty(), &MISSION),
            (!self.armed && self.mode.prevents_arming(), &MODE),
        ];
        fails
            .into_iter()
            .filter_map(|(fails, check)| fails.then_some(check))
            .collect()
    }

    /// Whether PX4's arming checks pass in the present mode.
    #[must_use]
    pub fn armable(&self) -> bool {
        let failing = self.failing_checks();
        !failing
            .iter()
            .any(|check| check.bars != Bars::Nothing && check.concerns(self.mode))
    }
}
