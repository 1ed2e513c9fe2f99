//! ROS 2 topics, by any backend.
//!
//! Owns the configuration, which carrier a graph has, the messages that a K1 exchanges over ROS topics, and the trait of a backend
//! for them. What is built in speaks DDS and needs no ROS installation; another carrier can be linked in (see
//! `toolboxes/robot-r2r`). A robot's own interfaces (`dds::booster`, `dds::unitree`) always use DDS. Read
//! [`RosBackend`].

pub mod backend;
pub mod carrier;
pub(crate) mod config;
pub(crate) mod error;
mod graph_backend;
pub mod message;
pub(crate) mod network;
pub(crate) mod path;
pub(crate) mod watch;

pub use backend::{DdsBackend, RosBackend};
pub use config::{Distro, RosConfig};
pub use error::RosError;
pub use message::{Kind, RosMessage};
