//! A robot's arms, base, head and lift: simulated, on servos, or over ROS 2.
//!
//! A call becomes a graph of actions (`tools`, `graph`). Each action is resolved against the robot's model (`resolve`,
//! `model`: joints, poses, gestures) and checked against its limits (`limits`); an [`adapter::Adapter`] does it.
//!
//! ```
//! use robot::model::Model;
//!
//! let arm = Model::so101()?;
//! assert!(arm.capabilities.base.is_none());
//! assert_eq!(arm.capabilities.model, "so101");
//! # Ok::<(), robot::model::ModelError>(())
//! ```

#![forbid(unsafe_code)]

pub mod action;
pub mod adapter;
mod backends;
mod bearing;
pub mod capability;
pub mod conclude;
pub mod config;
pub mod dds;
pub mod error;
pub mod graph;
pub mod limits;
pub mod model;
mod recogniser;
pub mod recognition;
pub mod resolve;
pub mod robots;
pub mod ros;
pub mod run;
mod sentences;
mod servo;
pub mod step;
pub mod store;
pub mod subsystem;
mod toolbox;
pub mod tools;
pub mod unit;
