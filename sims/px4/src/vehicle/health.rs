//! The health of the vehicle's sensors.

use serde::Serialize;

/// Health of sensors and estimates; tests can switch each off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Satellites in view, with a fix.
    pub gps: bool,
    /// Gyroscope.
    pub gyro: bool,
    /// Accelerometer.
    pub accel: bool,
    /// Magnetometer.
    pub mag: bool,
    /// A home position is known.
    pub home: bool,
    /// A remote control is connected.
    pub rc: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            gps: true,
            gyro: true,
            accel: true,
            mag: true,
            home: true,
            rc: false,
        }
    }
}
