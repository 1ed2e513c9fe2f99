//! Where a base stands that adds up its own ways. Pure.

use crate::action::Velocity;
use crate::bearing::half_circle;
use crate::spot::Spot;

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

    /// The same in a frame that has a name.
    pub(in crate::adapter) fn in_frame(self, frame: &str) -> Spot {
        Spot {
            frame: frame.to_owned(),
            x: thousandth(self.x),
            y: thousandth(self.y),
            heading: self.heading_degrees(),
        }
    }

    /// The same from another place: x is ahead of it, y to its left.
    pub(in crate::adapter) fn seen_from(self, from: Self) -> Self {
        let (x, y) = (self.x - from.x, self.y - from.y);
        let (sin, cos) = from.heading.sin_cos();
        Self {
            x: x * cos + y * sin,
            y: y * cos - x * sin,
            heading: self.heading - from.heading,
        }
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
