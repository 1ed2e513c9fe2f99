//! The channels of a Go2, as its file gives them.

use serde::Deserialize;

use crate::ros::RosConfig;

/// The channels of a Go2.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitreeGo2Config {
    /// Domain, interfaces. The robot is 192.168.123.161, this machine needs an address in its network.
    pub ros: RosConfig,
    /// How long an answer may take, in milliseconds.
    pub answer_ms: u64,
}

impl Default for UnitreeGo2Config {
    fn default() -> Self {
        Self {
            ros: RosConfig::default(),
            answer_ms: 1000,
        }
    }
}
