//! How far the vehicle has gone.

use serde::Serialize;

/// Extremes since the start or the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Excursions {
    /// Farthest from home, horizontally, metres.
    pub radius_m: f64,
    /// Greatest height above home, metres.
    pub up_m: f64,
    /// Lowest height above home, metres, while setpoints, missions or hold control the vehicle. Counts from the moment
    /// when it is above a metre until it descends by design: landing, return, or manual flight.
    pub lowest_m: Option<f64>,
    /// Greatest speed, metres per second.
    pub speed: f64,
    /// Smallest distance to the autopilot's fence, metres; negative beyond it. `None` without a fence.
    pub fence_depth_m: Option<f64>,
    /// Smallest distance to a solid object, metres. `None` without one.
    pub clearance_m: Option<f64>,
    /// Distance travelled, metres.
    pub path_m: f64,
}

impl Default for Excursions {
    fn default() -> Self {
        Self {
            radius_m: 0.0,
            up_m: 0.0,
            lowest_m: None,
            speed: 0.0,
            fence_depth_m: None,
            clearance_m: None,
            path_m: 0.0,
        }
    }
}
