//! What latitude and longitude may be.

use super::refusal::{Refusal, refuse};

/// Checks that latitude and longitude are a valid position.
///
/// # Errors
/// They are not a valid position.
pub(crate) fn check_position(lat: f64, lon: f64) -> Result<(), Refusal> {
    if !lat.is_finite() || !lon.is_finite() {
        return refuse("not_finite", "lat and lon must be finite numbers");
    }
    if !(-90.0..=90.0).contains(&lat) || !(-180.0..=180.0).contains(&lon) {
        return refuse(
            "out_of_range",
            format!("lat {lat}, lon {lon}: expected -90 to 90 and -180 to 180 degrees"),
        );
    }
    if lat == 0.0 && lon == 0.0 {
        return refuse(
            "out_of_range",
            "lat 0, lon 0 is how a missing position is written: expected a position that is known",
        );
    }
    Ok(())
}
