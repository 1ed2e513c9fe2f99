//! The toolbox's section of the configuration.
//!
//! Owns its shape. What belongs to one kind of robot is a struct in that adapter's file. Every key has a default that
//! works without hardware. Read [`Config`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::adapter::Estop;
use crate::adapter::booster_k1::BoosterK1Config;
use crate::adapter::johnny5::Johnny5Config;
use crate::adapter::sim::SimConfig;
use crate::adapter::unitree_g1::UnitreeG1Config;
use crate::limits::Bounds;

/// The section `robot`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The robots, by the name that the argument `robot` takes. One simulated robot where there are none.
    pub robots: BTreeMap<String, RobotConfig>,
    /// Where `save_config` writes. Default: `ovos-tools/robot` in the user's data folder.
    pub data_dir: Option<PathBuf>,
    /// How long the answer to a recognition question may take, in milliseconds.
    #[schemars(range(min = 100, max = 9_000))]
    pub recognition_timeout_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            robots: BTreeMap::new(),
            data_dir: None,
            recognition_timeout_ms: 2_000,
        }
    }
}

/// One robot.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RobotConfig {
    /// What drives it.
    pub adapter: AdapterKind,
    /// What an emergency stop does. Default: what is safe for the kind of robot.
    pub estop: Option<Estop>,
    /// Narrower limits than the robot's own; never wider.
    pub bounds: Bounds,
    /// A TOML file with poses, places, dances and gestures that are added to the built-in ones, or replace them.
    pub poses: Option<PathBuf>,
    /// For `sim`.
    pub sim: SimConfig,
    /// For `johnny5`.
    pub johnny5: Johnny5Config,
    /// For `booster_k1`.
    pub booster_k1: BoosterK1Config,
    /// For `unitree_g1`.
    pub unitree_g1: UnitreeG1Config,
}

/// What drives a robot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdapterKind {
    /// Nothing: a kinematic model.
    #[default]
    Sim,
    /// Feetech servos on serial buses.
    #[serde(rename = "johnny5")]
    Johnny5,
    /// Booster K1.
    BoosterK1,
    /// Unitree G1.
    UnitreeG1,
}
