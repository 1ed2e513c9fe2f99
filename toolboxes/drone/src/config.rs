//! The toolbox's section of the configuration.
//!
//! [`Config`] is the section as written, with defaults that need no hardware; `Config::checked` checks what serde
//! cannot. Nothing here can be changed from the bus.

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
    /// PX4's own simulation (SITL: SIH or Gazebo) on this machine, started by another program. What is not recognised as
    /// one is not commanded.
    Sitl,
    /// A real vehicle, or a simulation that is not recognised; needs `allow_real_vehicle`.
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

/// What happens when the battery falls below `flight_limits.min_battery_pct` in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatteryAction {
    /// It returns to where it took off, and lands there.
    #[default]
    Rtl,
    /// It lands where it is.
    Land,
    /// It hovers where it is.
    Hold,
}

/// What an agent has a vehicle in the air do when its run has ended, and neither people nor an emergency stop ended it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// It hovers where it is.
    #[default]
    Hold,
    /// It lands where it is.
    Land,
    /// It returns to where it took off, and lands there.
    Rtl,
}

impl AgentEnd {
    /// The tool that the agent calls.
    pub(crate) fn tool(self) -> Option<&'static str> {
        match self {
            Self::Hold => None,
            Self::Land => Some("land"),
            Self::Rtl => Some("rtl"),
        }
    }
}

/// The toolbox's section.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What the toolbox drives.
    pub backend: Backend,
    /// Allows commands to a real vehicle; the backend `vehicle` needs it. The other backends command only what they
    /// recognise as a simulator.
    pub allow_real_vehicle: bool,
    /// Path of mavsdk_server. Looked for in PATH and in .venv-mavsdk when it is not given.
    pub mavsdk_server: Option<PathBuf>,
    /// Path of px4-sim. Looked for beside the plugins and in PATH when it is not given.
    pub px4_sim: Option<PathBuf>,
    /// The vehicles; one called `drone` when none is given.
    pub vehicles: Vec<VehicleConfig>,
    /// How px4-sim is started.
    pub simulator: Simulator,
    /// The area in which the vehicle may fly.
    pub fence: Fence,
    /// Whether the fence is also sent to the vehicle, while it stands on the ground. The toolbox checks its own fence
    /// either way.
    pub upload_fence: Option<bool>,
    /// The limits of the guards.
    pub flight_limits: Limits,
    /// Limits on the age of perception data.
    pub perception: Perception,
    /// What an emergency stop does in the air.
    pub estop: Estop,
    /// The toolbox's own call when the battery falls below `flight_limits.min_battery_pct` in the air, once per flight.
    pub battery_action: BatteryAction,
    /// What `ovos-tools agent` has a vehicle do that it moved, when its run has ended: the tool of that name is called. After an
    /// emergency stop, a takeover and an end by people nothing is called.
    pub agent_end: AgentEnd,
    /// Folder of the run log, one JSONL file per run; none is written when it is not given.
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
    /// A file with what the vehicle sees; its writer replaces it atomically.
    #[serde(default)]
    pub scene_file: Option<PathBuf>,
}

/// How px4-sim is started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Simulator {
    /// Simulated seconds per real second, 0.1 to 20; for `sitl` the value that PX4 was started with
    /// (`PX4_SIM_SPEED_FACTOR`).
    pub speed: f64,
    /// The quirks of PX4 that it simulates: `all`, `none`, or names with commas.
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

/// Limits on the age of perception data, and the data to ignore.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Perception {
    /// Greatest age of detections, milliseconds.
    pub detection_max_age_ms: u64,
    /// Greatest age of obstacle distances, milliseconds.
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
    /// The configured vehicles; a default one when none is configured.
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

    /// Vehicle seconds per wall second.
    pub(crate) fn speed(&self) -> f64 {
        if self.backend == Backend::Vehicle {
            1.0
        } else {
            self.simulator.speed
        }
    }

    /// Checks what the schema cannot express.
    ///
    /// # Errors
    /// Names the key and the accepted values.
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
                    "vehicles: two have the id {}; give each an id of its own",
                    vehicle.id
                )));
            }
            if self.backend != Backend::Px4Sim && vehicle.url.is_none() && vehicle.address.is_none() {
                return Err(ToolError::bad_args(format!(
                    "vehicles: {} needs `url` (such as udpin://127.0.0.1:14540) or `address` (of a mavsdk_server)",
                    vehicle.id
                )));
            }
            for place in [&vehicle.url, &vehicle.address].into_iter().flatten() {
                if self.backend == Backend::Sitl && !is_loopback(place) {
                    return Err(ToolError::bad_args(format!(
                        "vehicles: {}: {place}: the backend `sitl` is for a simulation on this machine: expected a loopback \
                         address such as udpin://127.0.0.1:14540; everything else needs the backend `vehicle`",
                        vehicle.id
                    )));
                }
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

/// Whether a URL names only this machine. A serial port does not.
fn is_loopback(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let network = matches!(
        scheme,
        "udp" | "udpin" | "udpout" | "tcp" | "tcpin" | "tcpout" | "http"
    );
    let loopback = host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    network && (loopback || host == "localhost")
}
