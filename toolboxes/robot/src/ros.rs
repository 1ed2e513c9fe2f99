//! Graphs of ROS 2, by any carrier.
//!
//! Owns the configuration and which carrier a graph has. What is built in speaks DDS and needs no ROS installation; another
//! carrier can be linked in (see `toolboxes/robot-r2r`). A robot's own interfaces (`dds::booster`, `dds::unitree`) always use
//! DDS. Read [`carrier::Join`].

pub mod carrier;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod path;
pub(crate) mod watch;

pub use config::RosConfig;
pub use error::RosError;
