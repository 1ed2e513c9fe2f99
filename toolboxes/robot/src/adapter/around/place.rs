//! Where the base of a simulated robot stands. Pure.

use crate::action::Velocity;
use crate::bearing::half_circle;

/// A place in metres from where it began, and a heading in radians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::adapter) struct Place {
    pub(in crate::adapter) x: f64,
    pub(in crate::adapter) y: f64,
    pub(in crate::adapter) heading: f64,
}

impl Place {
    /// The heading from where it began, in degrees, positive to the left, above -180 to 180.
    pub(in crate::adapter) fn heading_degrees(self) -> f64 {
        half_circle(thousandth(self.heading.to_degrees()))
    }

    /// Where it stands after so many seconds of a constant velocity.
    pub(in crate::adapter) fn after(self, velocity: &Velocity, seconds: f64) -> Self {
        let Self { x, y, heading } = self;
        let turned = velocity.turn * seconds;
        // The chord of the arc that a constant velocity draws; for a straight line it is the line.
        let middle = heading + turned / 2.0;
        let shrink = if turned.abs() > 1e-9 {
            (turned / 2.0).sin() / (turned / 2.0)
        } else {
            1.0
        };
        let (along, across) = (velocity.x * seconds * shrink, velocity.y * seconds * shrink);
        Self {
            x: x + along * middle.cos() - across * middle.sin(),
            y: y + along * middle.sin() + across * middle.cos(),
            heading: heading + turned,
        }
    }
}

/// Rounds to three decimals.
pub(in crate::adapter) fn thousandth(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}
