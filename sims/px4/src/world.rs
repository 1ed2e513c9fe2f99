//! The world: labelled objects and obstacles, as the vehicle's camera and range sensor detect them.
//!
//! Pure geometry. Start with [`World`].

use serde::{Deserialize, Serialize};

use crate::geo::{Ned, horizontal, wrap};

/// An object in the world: an upright cylinder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thing {
    /// The label that a detector gives it; empty: a detector does not recognise it.
    #[serde(default)]
    pub label: String,
    /// Centre, metres north of home.
    pub north_m: f64,
    /// Centre, metres east of home.
    pub east_m: f64,
    /// Centre, metres above the ground.
    pub up_m: f64,
    /// Radius in metres.
    #[serde(default = "small")]
    pub radius_m: f64,
    /// Height in metres.
    #[serde(default = "small")]
    pub height_m: f64,
    /// Confidence of a detection, 0 to 1.
    #[serde(default = "sure")]
    pub conf: f64,
    /// Whether it is an obstacle for the range sensor and the vehicle.
    #[serde(default)]
    pub solid: bool,
}

fn small() -> f64 {
    0.1
}

fn sure() -> f64 {
    0.85
}

/// The forward camera and the range sensor beside it. Angles are full fields of view in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Camera {
    /// Horizontal field of view.
    pub fov_deg: f64,
    /// Vertical field of view.
    pub vertical_fov_deg: f64,
    /// Range of the recognition, metres.
    pub range_m: f64,
    /// Range of the obstacle measurement, metres.
    pub obstacle_range_m: f64,
}

impl Default for Camera {
    fn default() -> Self {
        Self {
            fov_deg: 60.0,
            vertical_fov_deg: 45.0,
            range_m: 25.0,
            obstacle_range_m: 12.0,
        }
    }
}

/// The objects around the vehicle, and its camera.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Objects and obstacles.
    #[serde(default)]
    pub things: Vec<Thing>,
    /// The camera that detects them.
    #[serde(default)]
    pub camera: Camera,
}

impl Default for World {
    /// A red cup on a balcony eight metres to the east-south-east, a person, two chairs and a tree.
    fn default() -> Self {
        let thing = |label: &str, north_m, east_m, up_m, radius_m, height_m, solid| Thing {
            label: label.to_owned(),
            north_m,
            east_m,
            up_m,
            radius_m,
            height_m,
            conf: sure(),
            solid,
        };
        Self {
            things: vec![
                thing("red cup", -2.0, 5.0, 4.6, 0.05, 0.12, false),
                thing("person", 9.0, 3.0, 0.9, 0.3, 1.8, true),
                thing("chair", 4.0, -5.0, 0.5, 0.3, 1.0, true),
                thing("chair", 5.0, -6.0, 0.5, 0.3, 1.0, true),
                thing("tree", 12.0, 0.0, 4.0, 0.4, 8.0, true),
            ],
            camera: Camera::default(),
        }
    }
}

/// One object as a detector reports it; distances in metres, image coordinates 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detection {
    /// Its label.
    pub label: String,
    /// Confidence, 0 to 1.
    pub conf: f64,
    /// Centre, from the left edge.
    pub x: f64,
    /// Centre, from the top edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
    /// Depth along the camera's axis, metres.
    pub z_m: f64,
    /// Distance along the line of sight, metres.
    pub dist_m: f64,
}

impl Thing {
    /// This object's centre relative to `eye`: forward, right and up in metres.
    fn seen_from(&self, eye: Ned, yaw: f64) -> (f64, f64, f64) {
        let (north, east) = (self.north_m - eye[0], self.east_m - eye[1]);
        let (sin, cos) = yaw.sin_cos();
        (
            north * cos + east * sin,
            east * cos - north * sin,
            self.up_m + eye[2],
        )
    }

    /// Distance from a point to the surface, metres; 0 inside.
    #[must_use]
    pub fn clearance(&self, at: Ned) -> f64 {
        let flat = horizontal([self.north_m - at[0], self.east_m - at[1], 0.0]) - self.radius_m;
        let upright = (self.up_m + at[2]).abs() - self.height_m / 2.0;
        flat.max(0.0).hypot(upright.max(0.0))
    }

    /// Whether it blocks the line of sight between two points.
    fn blocks(&self, from: Ned, to: (f64, f64, f64)) -> bool {
        let along = (to.0 - from[0], to.1 - from[1]);
        let squared = along.0 * along.0 + along.1 * along.1;
        if squared == 0.0 {
            return false;
        }
        let own = (self.north_m - from[0], self.east_m - from[1]);
        let share = (own.0 * along.0 + own.1 * along.1) / squared;
        if !(0.0..1.0).contains(&share) {
            return false;
        }
        let up = -from[2] + share * (to.2 + from[2]);
        let aside = (own.0 - share * along.0).hypot(own.1 - share * along.1);
        aside < self.radius_m && (up - self.up_m).abs() < self.height_m / 2.0
    }
}

impl World {
    /// The detections from this pose (`yaw` in radians), nearest first.
    #[must_use]
    pub fn detections(&self, eye: Ned, yaw: f64) -> Vec<Detection> {
        let mut seen: Vec<Detection> = self
            .things
            .iter()
            .filter(|thing| !thing.label.is_empty())
            .filter_map(|thing| self.detect(thing, eye, yaw))
            .collect();
        seen.sort_by(|a, b| a.dist_m.total_cmp(&b.dist_m));
        seen
    }

    fn detect(&self, thing: &Thing, eye: Ned, yaw: f64) -> Option<Detection> {
        let (forward, right, up) = thing.seen_from(eye, yaw);
        let dist_m = forward.hypot(right).hypot(up);
        let (fov, vertical) = (
            self.camera.fov_deg.to_radians(),
            self.camera.vertical_fov_deg.to_radians(),
        );
        let x = 0.5 + right.atan2(forward) / fov;
        let y = 0.5 - up.atan2(forward.hypot(right)) / vertical;
        let framed = (0.0..=1.0).contains(&x) && (0.0..=1.0).contains(&y);
        if forward <= 0.0 || !framed || dist_m > self.camera.range_m {
            return None;
        }
        let place = (thing.north_m, thing.east_m, thing.up_m);
        let hidden = |other: &Thing| other.solid && other != thing && other.blocks(eye, place);
        if self.things.iter().any(hidden) {
            return None;
        }
        Some(Detection {
            label: thing.label.clone(),
            conf: thing.conf,
            x,
            y,
            w: (2.0 * (thing.radius_m / dist_m.max(thing.radius_m)).asin() / fov).min(1.0),
            h: (2.0 * (thing.height_m / 2.0).atan2(dist_m) / vertical).min(1.0),
            z_m: forward,
            dist_m,
        })
    }

    /// Distance to the nearest solid object in the field of view, at most the sensor's range, metres.
    #[must_use]
    pub fn obstacle_ahead(&self, eye: Ned, yaw: f64) -> f64 {
        let camera = &self.camera;
        let half = camera.fov_deg.to_radians() / 2.0;
        let vertical = camera.vertical_fov_deg.to_radians() / 2.0;
        let in_view = |thing: &&Thing| {
            let (forward, right, up) = thing.seen_from(eye, yaw);
            let flat = forward.hypot(right);
            let apparent = (thing.radius_m / flat.max(thing.radius_m)).asin();
            let gap = (up.abs() - thing.height_m / 2.0).max(0.0);
            thing.solid && wrap(right.atan2(forward)).abs() - apparent < half && gap.atan2(flat) < vertical
        };
        let distances = self
            .things
            .iter()
            .filter(in_view)
            .map(|thing| thing.clearance(eye));
        distances.fold(camera.obstacle_range_m, f64::min)
    }

    /// Distance to the nearest solid object in any direction, metres; infinite without one.
    #[must_use]
    pub fn clearance(&self, at: Ned) -> f64 {
        let solid = self.things.iter().filter(|thing| thing.solid);
        solid
            .map(|thing| thing.clearance(at))
            .fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cup(north_m: f64, east_m: f64) -> Thing {
        Thing {
            label: "red cup".to_owned(),
            north_m,
            east_m,
            up_m: 5.0,
            radius_m: 0.05,
            height_m: 0.1,
            conf: 0.9,
            solid: false,
        }
    }

    fn world(things: Vec<Thing>) -> World {
        World {
            things,
            camera: Camera::default(),
        }
    }

    #[test]
    fn an_object_to_the_right_is_right_of_the_middle() {
        let rows = [
            (cup(4.0, 0.0), 0.0, Some(0.5)),
            (cup(4.0, 4.0 * f64::tan(15_f64.to_radians())), 0.0, Some(0.75)),
            (cup(4.0, -4.0 * f64::tan(15_f64.to_radians())), 0.0, Some(0.25)),
            (cup(0.0, 4.0), 0.0, None),
            (cup(0.0, 4.0), 90.0, Some(0.5)),
            (cup(-4.0, 0.0), 0.0, None),
            (cup(40.0, 0.0), 0.0, None),
        ];
        for (thing, yaw, x) in rows {
            let seen = world(vec![thing]).detections([0.0, 0.0, -5.0], f64::to_radians(yaw));
            match (seen.first(), x) {
                (Some(found), Some(x)) => assert!((found.x - x).abs() < 1e-9, "{found:?}"),
                (None, None) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_solid_thing_hides_what_is_behind_it_and_is_an_obstacle() {
        let mut wall = cup(2.0, 0.0);
        wall.radius_m = 0.5;
        wall.height_m = 10.0;
        wall.solid = true;
        wall.label.clear();
        let world = world(vec![cup(4.0, 0.0), wall]);
        let eye = [0.0, 0.0, -5.0];
        assert!(world.detections(eye, 0.0).is_empty());
        assert!((world.obstacle_ahead(eye, 0.0) - 1.5).abs() < 1e-9);
        assert!((world.obstacle_ahead(eye, std::f64::consts::PI) - 12.0).abs() < 1e-9);
    }
}
