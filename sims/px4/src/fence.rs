//! The autopilot's geofence: polygons and circles to stay inside or outside.
//!
//! Independent of vehicle and MAVLink. Start with [`Fence`].

/// One area of a fence, in metres north and east of home.
#[derive(Debug, Clone, PartialEq)]
pub enum Area {
    /// Corners in order; the last is joined to the first.
    Polygon(Vec<(f64, f64)>),
    /// A circle.
    Circle {
        /// Centre, north and east.
        centre: (f64, f64),
        /// Radius in metres.
        radius: f64,
    },
}

/// The areas of a geofence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fence {
    /// The areas to stay inside: if there are any, at least one of them has to contain the vehicle.
    pub inside: Vec<Area>,
    /// The areas to stay outside: none of them may contain the vehicle.
    pub outside: Vec<Area>,
}

impl Area {
    /// Whether the point is in the area.
    #[must_use]
    pub fn contains(&self, north: f64, east: f64) -> bool {
        self.depth(north, east) > 0.0
    }

    /// Distance to the edge in metres, negative outside.
    #[must_use]
    pub fn depth(&self, north: f64, east: f64) -> f64 {
        match self {
            Self::Circle { centre, radius } => radius - (north - centre.0).hypot(east - centre.1),
            Self::Polygon(corners) => {
                let mut odd = false;
                let mut nearest = f64::INFINITY;
                for (index, a) in corners.iter().enumerate() {
                    let b = &corners[(index + 1) % corners.len()];
                    let between = (a.1 > east) != (b.1 > east);
                    if between && north < (b.0 - a.0) * (east - a.1) / (b.1 - a.1) + a.0 {
                        odd = !odd;
                    }
                    nearest = nearest.min(to_segment((north, east), *a, *b));
                }
                if odd { nearest } else { -nearest }
            }
        }
    }
}

fn to_segment(p: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let along = (b.0 - a.0, b.1 - a.1);
    let squared = along.0 * along.0 + along.1 * along.1;
    let share = if squared > 0.0 {
        (((p.0 - a.0) * along.0 + (p.1 - a.1) * along.1) / squared).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (p.0 - a.0 - share * along.0).hypot(p.1 - a.1 - share * along.1)
}

impl Fence {
    /// Whether there is no area.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty() && self.outside.is_empty()
    }

    /// Distance to the fence in metres, negative beyond it; infinite without a fence.
    #[must_use]
    pub fn depth(&self, north: f64, east: f64) -> f64 {
        let inner = |areas: &[Area]| {
            let depths = areas.iter().map(|area| area.depth(north, east));
            depths.fold(f64::NEG_INFINITY, f64::max)
        };
        let within = if self.inside.is_empty() {
            f64::INFINITY
        } else {
            inner(&self.inside)
        };
        within.min(-inner(&self.outside))
    }

    /// Whether the fence allows a point.
    #[must_use]
    pub fn allows(&self, north: f64, east: f64) -> bool {
        self.depth(north, east) > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_the_way_to_the_line() {
        let square = Area::Polygon(vec![(-10.0, -10.0), (-10.0, 10.0), (10.0, 10.0), (10.0, -10.0)]);
        let hole = Area::Circle {
            centre: (5.0, 5.0),
            radius: 2.0,
        };
        let fence = Fence {
            inside: vec![square],
            outside: vec![hole],
        };
        let rows = [
            ((0.0, 0.0), 50_f64.sqrt() - 2.0),
            ((-9.0, 0.0), 1.0),
            ((-12.0, 0.0), -2.0),
            ((5.0, 5.0), -2.0),
        ];
        for ((north, east), depth) in rows {
            let found = fence.depth(north, east);
            assert!((found - depth).abs() < 1e-9, "{north} {east}: {found}");
        }
        assert!(Fence::default().allows(1e6, 0.0));
    }
}
