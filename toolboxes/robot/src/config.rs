//! The toolbox's section of the configuration.
//!
//! Owns its shape. What belongs to one kind of robot is in that robot's file. Every key has a default that works without
//! hardware. Read [`Config`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use ovos_toolbox_sdk::wire::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::adapter::around::SimConfig;
use crate::conduct::Estop;
use crate::limits::Bounds;
use crate::policy::PolicyTable;

/// The section `robot`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
// `ovos-tools check my-robot.toml` opens the toolbox with this section: the robot is simulated, so that no port is opened.
#[schemars(extend("x-checks" = {"toml": {"robots": {"checked": {"kind": "{file}", "simulated": true}}}}))]
// With `--live` the robot of the file is reached: its port is opened, its network joined.
#[schemars(extend("x-checks-live" = {"toml": {"robots": {"checked": {"kind": "{file}"}}}}))]
// The files whose changes a reload looks for, and how a robot is tried before the one that is driven ends for them.
#[schemars(extend("x-reads" = {"robots_dir": "ovos-tools/robots", "robots.*.kind": null, "robots.*.poses": null}))]
#[schemars(extend("x-trial" = {"robots": {"*": {"simulated": true}}}))]
pub struct Config {
    /// The robots, by the name that the argument `robot` takes. One simulated robot where there are none.
    pub robots: BTreeMap<String, RobotConfig>,
    /// The folder of your own robots' files. Default: `ovos-tools/robots` in the user's configuration folder.
    pub robots_dir: Option<PathBuf>,
    /// Where `save_config` and `remember_place` write. Default: `ovos-tools/robot` in the user's data folder.
    pub data_dir: Option<PathBuf>,
    /// How long the answer to a recognition question may take, in milliseconds.
    #[schemars(range(min = 100, max = 9_000))]
    pub recognition_timeout_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            robots: BTreeMap::new(),
            robots_dir: None,
            data_dir: None,
            recognition_timeout_ms: 2_000,
        }
    }
}

impl Config {
    /// Where saved settings and places are; `None` where neither the configuration nor the environment says where.
    #[must_use]
    pub fn data_dir(&self) -> Option<PathBuf> {
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let data = || {
            std::env::var_os("XDG_DATA_HOME")
                .map(PathBuf::from)
                .and_then(absolute)
        };
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
        let user = || Some(data().or_else(home)?.join("ovos-tools/robot"));
        self.data_dir.clone().or_else(user)
    }
}

/// One robot.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RobotConfig {
    /// The name of its file, such as `so101`: one that comes with the toolbox or one of `robots_dir`; or a path.
    pub kind: Option<String>,
    /// Changes to the channels of its file, such as `{"ports": {"right": "/dev/serial/by-id/..."}}`.
    pub channels: Object,
    /// Whether a simulator takes the place of its hardware.
    pub simulated: Option<bool>,
    /// What an emergency stop does. Default: what its file says.
    pub estop: Option<Estop>,
    /// Narrower limits than the robot's own; never wider.
    pub bounds: Bounds,
    /// A TOML file with poses, places, dances and gestures that are added to the robot's own, or replace them.
    pub poses: Option<PathBuf>,
    /// Programs that may have the robot for a time, such as LeRobot's policies, by the name that `run_policy` takes. Only for a robot
    /// of Feetech or Dynamixel servos. This toolbox's limits do not hold while one has it.
    pub policies: BTreeMap<String, PolicyTable>,
    /// For a simulated robot: what is around it.
    pub sim: SimConfig,
    /// The spelling before `kind`.
    pub adapter: Option<AdapterKind>,
    /// The spelling before `kind`: `layout`, and what is in `channels` now.
    pub johnny5: Object,
    /// The spelling before `kind`: `profile`, and what is in `channels` now.
    pub booster_k1: Object,
    /// The spelling before `kind`: what is in `channels` now.
    pub unitree_g1: Object,
}

/// What drove a robot, in the spelling before `kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdapterKind {
    /// The simulator.
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
