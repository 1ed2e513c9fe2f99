//! A robot's arms, base, head and lift: simulated, on servos, or over ROS 2.
//!
//! A robot is a file (`shelf`, `kind`). A call becomes a graph of actions (`tools`, `graph`). Each action is resolved against the robot's model (`resolve`,
//! `model`: joints, poses, gestures) and checked against its limits (`limits`); an [`adapter::Adapter`] does it.
//!
//! ```
//! use robot::shelf::Shelf;
//!
//! let misspelt = Shelf::default().find("so-101").err().map(|error| error.to_string());
//! assert!(misspelt.is_some_and(|text| text.contains("did you mean so101?")));
//! assert_eq!(Shelf::default().find("so101")?.name, "so101");
//! # Ok::<(), robot::model::ModelError>(())
//! ```

#![forbid(unsafe_code)]

pub mod action;
pub mod adapter;
pub mod aim;
mod backends;
mod bearing;
mod bus_name;
pub mod camera;
pub mod capability;
mod choice;
mod clock;
pub mod conclude;
pub mod conduct;
pub mod config;
pub mod dds;
pub mod driver;
pub mod error;
mod eyes;
pub mod geometry;
pub mod graph;
pub mod journey;
pub mod kind;
pub mod limits;
pub mod model;
pub mod places;
pub mod policy;
pub mod position;
pub mod reach;
mod recogniser;
pub mod recognition;
pub mod resolve;
pub mod robots;
pub mod ros;
pub mod run;
mod sentences;
mod servo;
pub mod shape;
pub mod shelf;
pub mod spot;
mod state_file;
pub mod step;
pub mod store;
pub mod subsystem;
mod toolbox;
pub mod tools;
pub mod unit;
mod video;

#[cfg(feature = "toolbox")]
pub use toolbox::toolbox_role_v1;
