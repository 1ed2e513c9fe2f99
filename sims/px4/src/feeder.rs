//! Perception for a vehicle in another simulation: combines its pose from MAVLink with a list of placed objects into
//! the scene that a vision pipeline would write.
//!
//! PX4's SIH simulation sends the true pose to a port of its own (`HIL_STATE_QUATERNION` to UDP 19410, 25 times a
//! second: `px4-rc.mavlink`, PX4 1.15 and later); any other PX4 sends its estimate (`GLOBAL_POSITION_INT`). The feeder
//! sends nothing. Start with [`Feeder`].

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use mavlink::dialects::common::MavMessage;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use crate::{
    geo::{Home, Ned},
    link::frame,
    scene::Scene,
    serve::{SCENE, ServeError, unix_now},
    world::World,
};

/// The `source` of the scenes.
const SOURCE: &str = "placed-objects";

/// The pose of a vehicle.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pose {
    lat: f64,
    lon: f64,
    /// Metres above sea level.
    alt: f64,
    /// Heading in radians, clockwise from north.
    yaw: f64,
}

impl Pose {
    /// The pose in a message, and whether it is the simulation's true pose.
    fn of_message(message: &MavMessage) -> Option<(Self, bool)> {
        let degrees = |value: i32| f64::from(value) / 1e7;
        let metres = |value: i32| f64::from(value) / 1e3;
        match message {
            MavMessage::HIL_STATE_QUATERNION(state) => {
                let [w, x, y, z] = state.attitude_quaternion.map(f64::from);
                let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
                let (lat, lon) = (degrees(state.lat), degrees(state.lon));
                let alt = metres(state.alt);
                Some((Self { lat, lon, alt, yaw }, true))
            }
            // A heading of 65535 means unknown.
            MavMessage::GLOBAL_POSITION_INT(state) if state.hdg != u16::MAX => {
                let yaw = (f64::from(state.hdg) / 100.0).to_radians();
                let (lat, lon) = (degrees(state.lat), degrees(state.lon));
                let alt = metres(state.alt);
                Some((Self { lat, lon, alt, yaw }, false))
            }
            _ => None,
        }
    }
}

/// Turns poses into scenes. Objects are placed relative to `home`, by default the first pose received.
#[derive(Debug)]
pub struct Feeder {
    world: World,
    home: Option<Home>,
    pose: Option<Pose>,
    /// Whether a true pose was received; estimates are ignored then.
    true_pose: bool,
}

impl Feeder {
    /// A feeder without a pose.
    #[must_use]
    pub fn new(world: World, home: Option<Home>) -> Self {
        Self {
            world,
            home,
            pose: None,
            true_pose: false,
        }
    }

    /// Reads a message; returns true when it changed the pose.
    pub fn hear(&mut self, message: &MavMessage) -> bool {
        let Some((pose, truth)) = Pose::of_message(message) else {
            return false;
        };
        if self.true_pose && !truth {
            return false;
        }
        if self.pose.is_none() {
            let kind = if truth { "true pose" } else { "own estimate" };
            tracing::info!(
                lat = pose.lat,
                lon = pose.lon,
                alt = pose.alt,
                "heard the vehicle's {kind}"
            );
        }
        self.true_pose |= truth;
        self.pose = Some(pose);
        self.home.get_or_insert(Home {
            lat: pose.lat,
            lon: pose.lon,
            alt: pose.alt,
        });
        true
    }

    /// The scene at `ts`, seconds since 1970; `None` before the first pose.
    #[must_use]
    pub fn scene(&self, ts: f64) -> Option<Scene> {
        let (pose, home) = (self.pose?, self.home?);
        let (north, east) = home.to_local(pose.lat, pose.lon);
        let eye: Ned = [north, east, home.alt - pose.alt];
        Some(Scene::seen(&self.world, eye, pose.yaw, SOURCE, ts))
    }

    /// Replaces `scene_file` ten times a second while poses arrive through `socket`. When they stop, the scene goes
    /// stale, and the drone toolbox rejects it.
    ///
    /// # Errors
    /// The socket fails, or the file cannot be written.
    ///
    /// # Cancel safety
    /// The last scene remains.
    pub async fn run(
        mut self,
        socket: UdpSocket,
        scene_file: PathBuf,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let mut datagram = [0; 2048];
        let mut written: Option<Instant> = None;
        loop {
            let length = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                received = socket.recv_from(&mut datagram) => match received {
                    Ok((length, _)) => length,
                    Err(source) => return Err(ServeError::Socket { what: "pose", source }),
                },
            };
            let mut moved = false;
            for (_, message) in frame::decode(&datagram[..length]) {
                moved |= self.hear(&message);
            }
            let due = written.is_none_or(|at| at.elapsed() >= SCENE - EARLY);
            if let Some(scene) = (moved && due).then(|| self.scene(unix_now())).flatten() {
                written = Some(Instant::now());
                scene.write(&scene_file).map_err(|source| ServeError::Scene {
                    path: scene_file.clone(),
                    source,
                })?;
            }
        }
    }
}

/// A pose that arrives this long before the next scene is due triggers it; otherwise 25 poses a second would give only
/// 8 scenes.
const EARLY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use mavlink::dialects::common::{GLOBAL_POSITION_INT_DATA, HIL_STATE_QUATERNION_DATA};

    use super::*;

    /// The true pose `north_m` north of the default home, `up_m` high, with this heading.
    fn truth(north_m: f64, up_m: f64, yaw_deg: f64) -> MavMessage {
        let home = Home::default();
        let (lat, lon) = home.to_global(north_m, 0.0);
        let half = yaw_deg.to_radians() / 2.0;
        let mut state = HIL_STATE_QUATERNION_DATA {
            lat: (lat * 1e7).round() as i32,
            lon: (lon * 1e7).round() as i32,
            alt: ((home.alt + up_m) * 1e3).round() as i32,
            ..Default::default()
        };
        state.attitude_quaternion = [half.cos() as f32, 0.0, 0.0, half.sin() as f32];
        MavMessage::HIL_STATE_QUATERNION(state)
    }

    fn estimate(north_m: f64) -> MavMessage {
        let (lat, lon) = Home::default().to_global(north_m, 0.0);
        MavMessage::GLOBAL_POSITION_INT(GLOBAL_POSITION_INT_DATA {
            lat: (lat * 1e7).round() as i32,
            lon: (lon * 1e7).round() as i32,
            alt: 490_000,
            hdg: 0,
            ..Default::default()
        })
    }

    fn world() -> World {
        serde_json::from_str(
            r#"{"things": [{"label": "red cup", "north_m": 8, "east_m": 0, "up_m": 2},
                           {"north_m": 12, "east_m": 0, "up_m": 2, "height_m": 4, "solid": true}]}"#,
        )
        .unwrap()
    }

    /// The scene as JSON, from a feeder whose vehicle started on the ground.
    fn seen(messages: &[MavMessage]) -> serde_json::Value {
        let mut feeder = Feeder::new(world(), Some(Home::default()));
        for message in messages {
            feeder.hear(message);
        }
        serde_json::to_value(feeder.scene(1.0)).unwrap()
    }

    #[test]
    fn an_object_is_seen_from_where_the_vehicle_is() {
        for (messages, distance) in [
            (vec![truth(0.0, 2.0, 0.0)], Some(8.0)),
            (vec![truth(5.0, 2.0, 0.0)], Some(3.0)),
            (vec![truth(0.0, 2.0, 90.0)], None),
            (vec![truth(10.0, 2.0, 180.0)], Some(2.0)),
            (vec![estimate(2.0)], Some(6.0)),
            // After a true pose, estimates are ignored.
            (vec![truth(5.0, 2.0, 0.0), estimate(2.0)], Some(3.0)),
        ] {
            let scene = seen(&messages);
            let found = scene["detections"][0]["dist_m"].as_f64();
            match (found, distance) {
                (Some(found), Some(distance)) => assert!((found - distance).abs() < 0.05, "{scene}"),
                (found, distance) => assert_eq!(found, distance, "{scene}"),
            }
        }
    }

    #[tokio::test]
    async fn the_file_follows_the_vehicle() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scene.json");
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let stop = CancellationToken::new();
        let feeder = Feeder::new(world(), Some(Home::default()));
        let running = tokio::spawn(feeder.run(socket, file.clone(), stop.clone()));
        let vehicle = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut encoder = frame::Encoder::default();
        for (north_m, distance) in [(0.0, 8.0), (5.0, 3.0)] {
            let message = truth(north_m, 2.0, 0.0);
            let component = 1;
            let bytes = encoder.encode(&crate::link::Outgoing { component, message });
            let scene_distance = || {
                let text = std::fs::read(&file).ok()?;
                let scene: serde_json::Value = serde_json::from_slice(&text).unwrap();
                scene["detections"][0]["dist_m"].as_f64()
            };
            // Poses are repeated, as a vehicle does, until the file shows the result.
            tokio::time::timeout(Duration::from_secs(20), async {
                while scene_distance().is_none_or(|found| (found - distance).abs() > 0.05) {
                    vehicle.send_to(&bytes, address).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
            .await
            .unwrap();
        }
        stop.cancel();
        running.await.unwrap().unwrap();
    }

    #[test]
    fn home_is_where_the_vehicle_was_first_heard() {
        let mut feeder = Feeder::new(world(), None);
        assert!(feeder.scene(1.0).is_none(), "a scene before a pose was heard");
        feeder.hear(&truth(100.0, 0.0, 0.0));
        feeder.hear(&truth(103.0, 2.0, 0.0));
        let scene = serde_json::to_value(feeder.scene(1.0)).unwrap();
        let distance = scene["detections"][0]["dist_m"].as_f64().unwrap();
        assert!((distance - 5.0).abs() < 0.05, "{scene}");
        assert_eq!(scene["source"], "placed-objects");
        assert!(scene["obstacle"]["min_dist_m"].as_f64().unwrap() < 9.0, "{scene}");
    }
}
