//! The fence: a circle around the place where the vehicle was first seen, or a polygon, and the margin inside it.

use ovos_toolbox_sdk::prelude::*;

use super::facts::Home;
use super::limits::Limits;
use super::position::check_position;
use super::refusal::{Refusal, refuse};
use crate::geo::Ned;

/// The area in which the vehicle may fly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fence {
    /// Radius in metres around the place where the vehicle was first heard.
    RadiusM(f64),
    /// Corners as `[latitude, longitude]` in degrees, at least three.
    Polygon(Vec<[f64; 2]>),
}

impl Default for Fence {
    fn default() -> Self {
        Self::RadiusM(100.0)
    }
}

impl Fence {
    /// Checks that the numbers make a fence.
    ///
    /// # Errors
    /// Names the key and the accepted values.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), String> {
        match self {
            Self::RadiusM(radius) => {
                let least = limits.fence_margin_m + 1.0;
                if !radius.is_finite() || *radius < least || *radius > 5000.0 {
                    return Err(format!(
                        "fence.radius_m {radius}: expected {least} (the margin and 1 m) to 5000"
                    ));
                }
            }
            Self::Polygon(corners) => {
                if corners.len() < 3 || corners.len() > 64 {
                    return Err(format!(
                        "fence.polygon: {} corners, expected 3 to 64",
                        corners.len()
                    ));
                }
                for [lat, lon] in corners {
                    check_position(*lat, *lon)
                        .map_err(|refusal| format!("fence.polygon: {}", refusal.msg))?;
                }
            }
        }
        Ok(())
    }

    /// Checks that the straight line stays inside the fence by `margin_m`. A line that starts within the margin may
    /// lead further inside.
    pub(super) fn contains_way(&self, home: Home, margin_m: f64, from: Ned, to: Ned) -> Result<(), Refusal> {
        let (start, end) = (self.inside(home, from), self.inside(home, to));
        // Sampled, because a polygon may be concave; a step is shorter than the margin.
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let steps = (length / (margin_m / 2.0)).ceil().clamp(1.0, 20_000.0);
        let mut least = end;
        let mut step = 1.0;
        while step < steps {
            let part = step / steps;
            let between = [
                from[0] + (to[0] - from[0]) * part,
                from[1] + (to[1] - from[1]) * part,
                to[2],
            ];
            least = least.min(self.inside(home, between));
            step += 1.0;
        }
        if least >= margin_m || (least >= start && end > start && start < margin_m) {
            return Ok(());
        }
        let problem = if least < 0.0 {
            "would leave the fence"
        } else {
            "would come too close to the fence"
        };
        refuse(
            "fence",
            format!(
                "that {problem}: {least:.1} m inside at its nearest point, the margin is {margin_m:.1} m"
            ),
        )
    }

    /// Distance to the fence in metres, negative outside.
    pub(crate) fn inside(&self, home: Home, place: Ned) -> f64 {
        match self {
            Self::RadiusM(radius) => radius - (place[0] - home.centre[0]).hypot(place[1] - home.centre[1]),
            Self::Polygon(corners) => {
                let corners: Vec<[f64; 2]> = corners
                    .iter()
                    .map(|[lat, lon]| home.origin.local(*lat, *lon))
                    .collect();
                polygon(&corners, [place[0], place[1]])
            }
        }
    }

    /// The fence in degrees, for the vehicle's own geofence.
    pub(crate) fn global(&self, home: Home) -> Global {
        match self {
            Self::RadiusM(radius) => {
                let (lat, lon) = home.origin.global(home.centre[0], home.centre[1]);
                Global::Circle(lat, lon, *radius)
            }
            Self::Polygon(corners) => Global::Polygon(corners.clone()),
        }
    }
}

/// The fence in degrees: latitude, longitude and radius in metres, or corners.
pub(crate) enum Global {
    Circle(f64, f64, f64),
    Polygon(Vec<[f64; 2]>),
}

/// Distance to the nearest edge in metres, negative outside.
fn polygon(corners: &[[f64; 2]], at: [f64; 2]) -> f64 {
    let mut inside = false;
    let mut nearest = f64::INFINITY;
    for (index, a) in corners.iter().enumerate() {
        let b = corners[(index + 1) % corners.len()];
        if (a[1] > at[1]) != (b[1] > at[1]) && at[0] < (b[0] - a[0]) * (at[1] - a[1]) / (b[1] - a[1]) + a[0] {
            inside = !inside;
        }
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let squared = dx * dx + dy * dy;
        let along = if squared == 0.0 {
            0.0
        } else {
            (((at[0] - a[0]) * dx + (at[1] - a[1]) * dy) / squared).clamp(0.0, 1.0)
        };
        nearest = nearest.min((at[0] - a[0] - along * dx).hypot(at[1] - a[1] - along * dy));
    }
    if inside { nearest } else { -nearest }
}
