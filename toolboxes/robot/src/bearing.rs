//! Degrees on a circle.

/// The same direction from above -180 to 180 degrees.
#[must_use]
pub(crate) fn half_circle(degrees: f64) -> f64 {
    let turned = degrees.rem_euclid(360.0);
    // No negative zero.
    (if turned > 180.0 { turned - 360.0 } else { turned }) + 0.0
}

#[cfg(test)]
mod tests {
    use super::half_circle;

    #[test]
    fn a_direction_is_within_half_a_circle_of_straight_ahead() {
        for (degrees, expected) in [
            (0.0, 0.0),
            (-0.0, 0.0),
            (180.0, 180.0),
            (-180.0, 180.0),
            (181.0, -179.0),
            (-411.0, -51.0),
            (720.0, 0.0),
        ] {
            let found = half_circle(degrees);
            assert!(found.to_bits() == f64::to_bits(expected), "{degrees}: {found}");
        }
    }
}
