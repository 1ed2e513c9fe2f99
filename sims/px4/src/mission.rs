//! The uploaded mission, as MAVLink items.
//!
//! The navigator flies it. Start with [`Item`].

/// `MAV_CMD_NAV_WAYPOINT`.
pub const WAYPOINT: u16 = 16;
/// `MAV_CMD_NAV_RETURN_TO_LAUNCH`.
pub const RETURN: u16 = 20;
/// `MAV_CMD_NAV_LAND`.
pub const LAND: u16 = 21;
/// `MAV_CMD_NAV_TAKEOFF`.
pub const TAKEOFF: u16 = 22;
/// `MAV_CMD_DO_CHANGE_SPEED`.
pub const CHANGE_SPEED: u16 = 178;

/// One item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item {
    /// MAVLink's command id.
    pub command: u16,
    /// Its first four parameters; for a waypoint: seconds to stay, acceptance radius, unused, heading in degrees.
    pub params: [f64; 4],
    /// Latitude in degrees.
    pub lat: f64,
    /// Longitude in degrees.
    pub lon: f64,
    /// Metres above home.
    pub alt: f64,
}

impl Item {
    /// Whether the item is a position to fly to.
    #[must_use]
    pub fn is_place(&self) -> bool {
        matches!(self.command, WAYPOINT | TAKEOFF)
    }
}

/// The mission and its progress.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mission {
    /// All items.
    pub items: Vec<Item>,
    /// Index of the active item.
    pub current: usize,
    /// Index of the item last reached.
    pub reached: Option<usize>,
    /// Simulated time of the upload.
    pub uploaded: f64,
    /// Cruise speed in metres per second, from the last speed item.
    pub speed: Option<f64>,
    /// Simulated time of the arrival at the active waypoint.
    pub arrived: Option<f64>,
}
