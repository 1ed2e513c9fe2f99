//! The camera: counts photos and recordings, without pictures.
//!
//! Start with [`Payload`].

use serde::Serialize;

/// A photo that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Photo {
    /// Photo number, from 0.
    pub index: i32,
    /// Latitude in degrees.
    pub lat: f64,
    /// Longitude in degrees.
    pub lon: f64,
    /// Metres above sea level.
    pub alt: f64,
    /// Metres above home.
    pub height: f64,
    /// Heading in radians.
    pub yaw: f64,
}

/// The state of the camera.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Payload {
    /// Whether there is a camera; PX4's own simulation has none.
    pub present: bool,
    /// Whether it does what it acknowledges.
    pub obeys: bool,
    /// Number of photos taken.
    pub photos: i32,
    /// Simulated time at which the recording began.
    pub recording_since: Option<f64>,
    /// Number of recordings started.
    pub videos: u32,
}

impl Default for Payload {
    fn default() -> Self {
        Self {
            present: true,
            obeys: true,
            photos: 0,
            recording_since: None,
            videos: 0,
        }
    }
}
