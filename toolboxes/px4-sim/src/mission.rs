//! The uploaded mission: raw items as MAVLink numbers them.
//!
//! Flying it is the navigator's. Start with [`Item`].

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
    /// MAVLink's number of the command.
    pub command: u16,
    /// Its first four parameters: for a way point seconds to stay, acceptance radius, -, heading in degrees.
    pub params: [f64; 4],
    /// Latitude in degrees.
    pub lat: f64,
    /// Longitude in degrees.
    pub lon: f64,
    /// Metres above home.
    pub alt: f64,
}

impl Item {
    /// Whether the vehicle has to fly somewhere for it.
    #[must_use]
    pub fn is_place(&self) -> bool {
        matches!(self.command, WAYPOINT | TAKEOFF)
    }
}

/// The mission and how far it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mission {
    /// All items.
    pub items: Vec<Item>,
    /// The item it is at.
    pub current: usize,
    /// The item it reached last.
    pub reached: Option<usize>,
    /// Simulated time of the upload.
    pub uploaded: f64,
    /// Cruise in metres per second, from the last speed item.
    pub speed: Option<f64>,
    /// Since when it stays at the current way point.
    pub arrived: Option<f64>,
}
