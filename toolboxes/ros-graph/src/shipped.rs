//! The definitions that are shipped, by distribution of ROS 2. `interfaces/LICENCES.md` says whose they are.

use schemars::JsonSchema;
use serde::Deserialize;

/// A distribution of ROS 2, whose definitions are known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// 2022.
    Humble,
    /// 2024.
    #[default]
    Jazzy,
    /// 2025, and what is newer.
    Kilted,
}

macro_rules! packages {
    ($distribution:literal: $($name:literal),* $(,)?) => {
        &[$(include_str!(concat!("../interfaces/", $distribution, "/", $name, ".txt"))),*]
    };
}

const HUMBLE: &[&str] = packages!("humble":
    "action_msgs", "builtin_interfaces", "control_msgs", "diagnostic_msgs", "geometry_msgs", "irobot_create_msgs",
    "lifecycle_msgs", "nav2_msgs", "nav_msgs", "rcl_interfaces", "rmw_dds_common", "rosgraph_msgs", "sensor_msgs",
    "std_msgs", "std_srvs", "tf2_msgs", "trajectory_msgs", "unique_identifier_msgs",
);

const JAZZY: &[&str] = packages!("jazzy":
    "builtin_interfaces", "control_msgs", "geometry_msgs", "nav2_msgs", "rcl_interfaces", "rmw_dds_common",
    "sensor_msgs", "service_msgs", "type_description_interfaces",
);

const KILTED: &[&str] = packages!("kilted": "control_msgs", "nav2_msgs", "nav_msgs");

impl Distribution {
    /// The distribution of this name, in small letters.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "humble" => Some(Self::Humble),
            "jazzy" => Some(Self::Jazzy),
            "kilted" => Some(Self::Kilted),
            _ => None,
        }
    }

    /// The texts of each package. One that comes later takes the place of one that came before.
    pub(crate) fn packages(self) -> impl Iterator<Item = &'static str> {
        let layers: &[&[&str]] = match self {
            Self::Humble => &[HUMBLE],
            Self::Jazzy => &[HUMBLE, JAZZY],
            Self::Kilted => &[HUMBLE, JAZZY, KILTED],
        };
        layers.iter().copied().flatten().copied()
    }
}
