//! Positions on a flat earth around home, in metres north, east and down.
//!
//! Start with [`Home`].

/// Mean radius of the earth in metres, the one PX4's map projection uses.
const EARTH_RADIUS_M: f64 = 6_371_000.0;

/// A point or a velocity: north, east, down. Metres, or metres per second.
pub type Ned = [f64; 3];

/// The origin of the local frame, which is also the home position and the ground.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Home {
    /// Latitude in degrees, -90 to 90.
    pub lat: f64,
    /// Longitude in degrees, -180 to 180.
    pub lon: f64,
    /// Altitude above mean sea level in metres.
    pub alt: f64,
}

impl Default for Home {
    /// The default position of PX4's own simulations.
    fn default() -> Self {
        Self {
            lat: 47.397_742,
            lon: 8.545_594,
            alt: 488.0,
        }
    }
}

impl Home {
    /// Converts degrees to metres north and east of home.
    #[must_use]
    pub fn to_local(&self, lat: f64, lon: f64) -> (f64, f64) {
        let north = (lat - self.lat).to_radians() * EARTH_RADIUS_M;
        let east = (lon - self.lon).to_radians() * EARTH_RADIUS_M * self.lat.to_radians().cos();
        (north, east)
    }

    /// Converts metres north and east of home to latitude and longitude in degrees.
    #[must_use]
    pub fn to_global(&self, north: f64, east: f64) -> (f64, f64) {
        let lat = self.lat + (north / EARTH_RADIUS_M).to_degrees();
        let lon = self.lon + (east / (EARTH_RADIUS_M * self.lat.to_radians().cos())).to_degrees();
        (lat, lon)
    }
}

/// Wraps an angle to between -pi and pi, in radians.
#[must_use]
pub fn wrap(angle: f64) -> f64 {
    let turn = std::f64::consts::TAU;
    let wrapped = angle.rem_euclid(turn);
    if wrapped > std::f64::consts::PI {
        wrapped - turn
    } else {
        wrapped
    }
}

/// Length of the horizontal components.
#[must_use]
pub fn horizontal(v: Ned) -> f64 {
    v[0].hypot(v[1])
}

/// Length of the vector.
#[must_use]
pub fn length(v: Ned) -> f64 {
    horizontal(v).hypot(v[2])
}

/// The vector `a - b`.
#[must_use]
pub fn difference(a: Ned, b: Ned) -> Ned {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_the_trip_through_latitude_and_longitude() {
        let home = Home::default();
        for (north, east) in [(0.0, 0.0), (100.0, -250.0), (-3.5, 0.25)] {
            let (lat, lon) = home.to_global(north, east);
            let (n, e) = home.to_local(lat, lon);
            assert!((n - north).abs() < 1e-6 && (e - east).abs() < 1e-6, "{n} {e}");
        }
    }

    #[test]
    fn angles_wrap_to_half_a_turn_either_way() {
        let degrees = [(190.0, -170.0), (-190.0, 170.0), (360.0, 0.0), (180.0, 180.0)];
        for (angle, wrapped) in degrees {
            assert!((wrap(f64::to_radians(angle)).to_degrees() - wrapped).abs() < 1e-9);
        }
    }
}
