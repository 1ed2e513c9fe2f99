//! The toolbox's section in the configuration.
//!
//! What was written ([`Config`], defaults that work without hardware) and the check of what serde cannot see
//! ([`Config::checked`]). Nothing here can be changed from the bus.

use std::path::PathBuf;

use ovos_toolbox_sdk::prelude::*;

use crate::guard::{Fence, Limits};

/// What the toolbox drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The simulator `px4-sim`, which the toolbox starts itself and recognises.
    #[default]
    Px4Sim,
    /// PX4's own simulation (SITL or SIH) that somebody else has started.
    Sitl,
    /// A real vehicle; needs `allow_real_vehicle`.
    Vehicle,
}

/// What an emergency stop does in the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estop {
    /// Brake and hold; land only when the vehicle does not hold, or swings on for 10 s more without becoming slower.
    #[default]
    Hold,
    /// Brake and land.
    Land,
}

/// The toolbox's section.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What the toolbox drives.
    pub backend: Backend,
    /// A real vehicle may be commanded. Without it everything that was not recognised as a simulator is refused.
    pub allow_real_vehicle: bool,
    /// Path of mavsdk_server. Looked for in PATH and in .venv-mavsdk when it is not given.
    pub mavsdk_server: Option<PathBuf>,
    /// Path of px4-sim. Looked for beside the plugins and in PATH when it is not given.
    pub px4_sim: Option<PathBuf>,
    /// The vehicles; one called `drone` when none is given.
    pub vehicles: Vec<VehicleConfig>,
    /// How px4-sim is started.
    pub simulator: Simulator,
    /// Where the vehicle may be.
    pub fence: Fence,
    /// The fence is also sent to the vehicle, while it stands on the ground. Ours is checked either way.
    pub upload_fence: Option<bool>,
    /// The numbers of the guards.
    pub flight_limits: Limits,
    /// How old what was seen may be.
    pub perception: Perception,
    /// What an emergency stop does in the air.
    pub estop: Estop,
    /// Folder of the run log, a JSONL file a run; none is written when it is not given.
    pub run_log: Option<PathBuf>,
    /// How long a call waits for the first connection, in milliseconds.
    pub connect_timeout_ms: Option<u64>,
}

/// One vehicle.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VehicleConfig {
    /// Its name in the argument `vehicle`: letters, digits, `_` and `-`.
    pub id: String,
    /// Where the vehicle's MAVLink is, such as `udpin://127.0.0.1:14540` or `serial:///dev/ttyACM0:921600`; for
    /// `sitl` and `vehicle`.
    #[serde(default)]
    pub url: Option<String>,
    /// A mavsdk_server that runs already, such as `http://127.0.0.1:50051`; the toolbox starts none then.
    #[serde(default)]
    pub address: Option<String>,
    /// A file with what the vehicle sees, replaced atomically by whoever writes it.
    #[serde(default)]
    pub scene_file: Option<PathBuf>,
}

/// How px4-sim is started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Simulator {
    /// Simulated seconds in a real one, 0.1 to 20.
    pub speed: f64,
    /// Which awkward behaviour of PX4 it has: `all`, `none`, or names with commas.
    pub quirks: String,
    /// Latitude, longitude in degrees and altitude in metres of the place it stands on.
    pub home: [f64; 3],
    /// More arguments for px4-sim.
    pub args: Vec<String>,
}

impl Default for Simulator {
    fn default() -> Self {
        Self {
            speed: 1.0,
            quirks: "all".to_string(),
            home: [47.397_742, 8.545_594, 488.0],
            args: Vec::new(),
        }
    }
}

/// How old what was seen may be, and what of it is used at all.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Perception {
    /// Detections, in milliseconds.
    pub detection_max_age_ms: u64,
    /// Obstacle distances, in milliseconds.
    pub obstacle_max_age_ms: u64,
    /// Ablation: without depth no distance of an object is known, and an approach refuses.
    pub use_depth: bool,
    /// Ablation: without vision nothing is ever seen.
    pub use_vision: bool,
    /// Ablation: without obstacle data the way ahead is never free.
    pub use_obstacles: bool,
}

impl Default for Perception {
    fn default() -> Self {
        Self {
            detection_max_age_ms: 1000,
            obstacle_max_age_ms: 500,
            use_depth: true,
            use_vision: true,
            use_obstacles: true,
        }
    }
}

impl Config {
    /// The vehicles, at least one.
    pub(crate) fn vehicles(&self) -> Vec<VehicleConfig> {
        if !self.vehicles.is_empty() {
            return self.vehicles.clone();
        }
        vec![VehicleConfig {
            id: "drone".to_string(),
            url: None,
            address: None,
            scene_file: None,
        }]
    }

    /// Vehicle seconds in one of ours.
    pub(crate) fn speed(&self) -> f64 {
        if self.backend == Backend::Vehicle {
            1.0
        } else {
            self.simulator.speed
        }
    }

    /// Whether what it drives is a simulation, by configuration or by recognition.
    pub(crate) fn simulated(&self) -> bool {
        self.backend != Backend::Vehicle
    }

    /// Refuses what the schema cannot see.
    ///
    /// # Errors
    /// Names the key and what is accepted.
    pub(crate) fn checked(self) -> Result<Self, ToolError> {
        let mut seen = Vec::new();
        for vehicle in self.vehicles() {
            let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if vehicle.id.is_empty() || vehicle.id == "all" || !vehicle.id.bytes().all(legal) {
                return Err(ToolError::bad_args(format!(
                    "vehicles: id {:?}: expected letters, digits, _ and -, and not `all`",
                    vehicle.id
                )));
            }
            if seen.contains(&vehicle.id) {
                return Err(ToolError::bad_args(format!(
                    "vehicles: two are called {}",
                    vehicle.id
                )));
            }
            if self.backend != Backend::Px4Sim && vehicle.url.is_none() && vehicle.address.is_none() {
                return Err(ToolError::bad_args(format!(
                    "vehicles: {} needs `url` (such as udpin://127.0.0.1:14540) or `address` (of a mavsdk_server)",
                    vehicle.id
                )));
            }
            seen.push(vehicle.id);
        }
        if self.backend == Backend::Vehicle && !self.allow_real_vehicle {
            return Err(ToolError::bad_args(
                "backend `vehicle` moves a real machine: it needs `allow_real_vehicle: true`",
            ));
        }
        if !(0.1..=20.0).contains(&self.simulator.speed) {
            return Err(ToolError::bad_args(format!(
                "simulator.speed {}: expected 0.1 to 20",
                self.simulator.speed
            )));
        }
        self.flight_limits.check().map_err(ToolError::bad_args)?;
        self.fence
            .check(&self.flight_limits)
            .map_err(ToolError::bad_args)?;
        Ok(self)
    }
}
