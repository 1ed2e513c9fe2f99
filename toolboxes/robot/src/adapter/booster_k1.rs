//! The Booster K1, over ROS 2 topics or its own RPC.
//!
//! Owns what the two profiles share: a velocity is sent ten times a second and ended by a thread, and arms and head
//! are led in small steps. The profile `topics` uses the four documented ROS 2 topics, which need a small bridge on
//! the robot; `booster_rpc` uses the robot's own functions. Neither has a dead-man: a robot that loses its network
//! keeps its last velocity. Read [`BoosterK1`].

mod config;
mod driver;
mod moves;
mod posture;
mod robot;
mod routines;
mod rpc;
mod sent;
mod topics;
mod walker;

pub use self::config::{BoosterK1Config, Profile, Topics, VelocityType};
pub use self::robot::BoosterK1;
