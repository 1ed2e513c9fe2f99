//! The perception feed: the camera's detections as the JSON that a vision pipeline would write.
//!
//! Start with [`Scene::of`] (a simulated vehicle) or [`Scene::seen`] (any pose).

use std::{io::Write, path::Path};

use serde::Serialize;

use crate::{
    geo::Ned,
    vehicle::Vehicle,
    world::{Detection, World},
};

/// Scale for rounding: four decimals.
const PRECISION: f64 = 1e4;

/// One scene.
#[derive(Debug, Clone, Serialize)]
pub struct Scene {
    schema: u32,
    /// Seconds since 1970.
    ts: f64,
    frame: &'static str,
    source: &'static str,
    detections: Vec<Detection>,
    obstacle: Obstacle,
}

/// The nearest obstacle in the camera's field of view.
#[derive(Debug, Clone, Serialize)]
struct Obstacle {
    /// Metres; the sensor's range without an obstacle.
    min_dist_m: f64,
    fov_deg: f64,
    /// Seconds since 1970.
    ts: f64,
}

impl Scene {
    /// The detections of a simulated vehicle at `ts`, seconds since 1970.
    #[must_use]
    pub fn of(vehicle: &Vehicle, ts: f64) -> Self {
        let body = vehicle.body();
        Self::seen(&vehicle.world, body.position, body.yaw, "px4-sim", ts)
    }

    /// The detections from a pose (metres from home, `yaw` in radians) at `ts`, seconds since 1970.
    #[must_use]
    pub fn seen(world: &World, eye: Ned, yaw: f64, source: &'static str, ts: f64) -> Self {
        let mut detections = world.detections(eye, yaw);
        for seen in &mut detections {
            for number in [
                &mut seen.x,
                &mut seen.y,
                &mut seen.w,
                &mut seen.h,
                &mut seen.z_m,
                &mut seen.dist_m,
            ] {
                *number = (*number * PRECISION).round() / PRECISION;
            }
        }
        let nearest = world.obstacle_ahead(eye, yaw);
        Self {
            schema: 1,
            ts,
            frame: "front",
            source,
            detections,
            obstacle: Obstacle {
                min_dist_m: (nearest * PRECISION).round() / PRECISION,
                fov_deg: world.camera.fov_deg,
                ts,
            },
        }
    }

    /// Replaces the file atomically, so that a reader never sees a partial one.
    ///
    /// # Errors
    /// The folder is not writable.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}
