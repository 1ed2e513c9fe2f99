//! Positions on a flat earth around the origin of the vehicle's local frame.
//!
//! North, east, down in metres; headings in degrees, 0 is north, clockwise is positive. Pure. Read [`Origin`].

/// Mean radius of the earth in metres, the one PX4's map projection uses.
const EARTH_RADIUS_M: f64 = 6_371_000.0;

/// North, east, down: metres, or metres per second.
pub(crate) type Ned = [f64; 3];

/// The origin of the local frame, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Origin {
    pub(crate) lat: f64,
    pub(crate) lon: f64,
}

impl Origin {
    /// Computes the origin from one position known in both frames.
    pub(crate) fn from_fix(lat: f64, lon: f64, ned: Ned) -> Self {
        // From the position back to where both coordinates are zero.
        let at_fix = Self { lat, lon };
        let (lat, lon) = at_fix.global(-ned[0], -ned[1]);
        Self { lat, lon }
    }

    /// North and east in metres.
    pub(crate) fn local(self, lat: f64, lon: f64) -> [f64; 2] {
        let north = (lat - self.lat).to_radians() * EARTH_RADIUS_M;
        let east = wrap_deg(lon - self.lon).to_radians() * EARTH_RADIUS_M * self.lat.to_radians().cos();
        [north, east]
    }

    /// Latitude and longitude in degrees.
    pub(crate) fn global(self, north: f64, east: f64) -> (f64, f64) {
        let lat = self.lat + (north / EARTH_RADIUS_M).to_degrees();
        let lon = self.lon + (east / (EARTH_RADIUS_M * self.lat.to_radians().cos())).to_degrees();
        (lat, wrap_deg(lon))
    }
}

/// Wraps an angle to above -180 and at most 180 degrees.
pub(crate) fn wrap_deg(angle: f64) -> f64 {
    let turned = angle.rem_euclid(360.0);
    if turned > 180.0 { turned - 360.0 } else { turned }
}

/// The heading from 0 to below 360 degrees, rounded to this many digits.
pub(crate) fn compass_deg(yaw_deg: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (yaw_deg.rem_euclid(360.0) * scale).round() / scale % 360.0
}

/// Converts `forward` and `right` metres at a heading to north and east.
pub(crate) fn from_body(forward: f64, right: f64, yaw_deg: f64) -> [f64; 2] {
    let (sin, cos) = yaw_deg.to_radians().sin_cos();
    [forward * cos - right * sin, forward * sin + right * cos]
}

/// Straight distance in metres.
pub(crate) fn distance(a: Ned, b: Ned) -> f64 {
    length([a[0] - b[0], a[1] - b[1], a[2] - b[2]])
}

/// Length of a vector.
pub(crate) fn length(v: Ned) -> f64 {
    (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt()
}

/// The point at most `step` metres from `from` on the line to `to`.
pub(crate) fn towards(from: Ned, to: Ned, step: f64) -> Ned {
    let way = distance(from, to);
    if way <= step || way == 0.0 {
        return to;
    }
    let part = step / way;
    std::array::from_fn(|axis| from[axis] + (to[axis] - from[axis]) * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_wrap_and_places_come_back() {
        for (angle, expected) in [
            (0.0, 0.0),
            (180.0, 180.0),
            (-180.0, 180.0),
            (190.0, -170.0),
            (-540.0, 180.0),
        ] {
            assert!((wrap_deg(angle) - expected).abs() < 1e-9, "{angle}");
        }
        for (yaw, digits, expected) in [
            (-90.0, 0, 270.0),
            (-0.04, 1, 0.0),
            (359.96, 1, 0.0),
            (359.4, 0, 359.0),
            (359.6, 0, 0.0),
            (187.34, 1, 187.3),
        ] {
            assert_eq!(compass_deg(yaw, digits), expected, "{yaw}");
        }
        let origin = Origin {
            lat: 47.397_742,
            lon: 8.545_594,
        };
        let (lat, lon) = origin.global(31.0, -12.5);
        let [north, east] = origin.local(lat, lon);
        assert!(
            (north - 31.0).abs() < 1e-6 && (east + 12.5).abs() < 1e-6,
            "{north} {east}"
        );
        // On both sides of the antimeridian longitudes stay within 180 degrees.
        for (lon, east) in [(179.999_9, 50.0), (-179.999_9, -50.0)] {
            let fiji = Origin { lat: -17.0, lon };
            let (lat, over) = fiji.global(0.0, east);
            assert!(over.abs() <= 180.0 && over.signum() == -lon.signum(), "{over}");
            assert!((fiji.local(lat, over)[1] - east).abs() < 1e-3, "{over}");
        }
        let again = Origin::from_fix(lat, lon, [31.0, -12.5, 0.0]);
        assert!((again.lat - origin.lat).abs() < 1e-8 && (again.lon - origin.lon).abs() < 1e-8);
        let [north, east] = from_body(2.0, 1.0, 90.0);
        assert!(
            (north + 1.0).abs() < 1e-9 && (east - 2.0).abs() < 1e-9,
            "{north} {east}"
        );
        assert_eq!(towards([0.0; 3], [4.0, 0.0, 3.0], 2.5), [2.0, 0.0, 1.5]);
    }
}
