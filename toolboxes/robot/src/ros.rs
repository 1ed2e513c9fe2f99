//! ROS 2 topics, by any backend.
//!
//! Owns the configuration, the messages that the adapters exchange over ROS topics, and the trait of a backend. The
//! built-in backend speaks DDS and needs no ROS installation; another one can be linked in (see
//! `toolboxes/robot-r2r`). A robot's own interfaces (`dds::booster`, `dds::unitree`) always use DDS. Read
//! [`RosBackend`].

pub mod backend;
pub(crate) mod config;
pub(crate) mod error;
pub mod message;
pub(crate) mod path;
pub(crate) mod watch;

pub use backend::{DdsBackend, RosBackend};
pub use config::{Distro, RosConfig};
pub use error::RosError;
pub use message::{Kind, RosMessage};
