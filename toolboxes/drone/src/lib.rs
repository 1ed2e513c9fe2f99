//! Guarded skills for a PX4 vehicle through MAVSDK.
//!
//! A call comes in (`toolbox`), finds its vehicle (`fleet`), is judged by the table of guards (`guard`) against what is
//! known of the vehicle now (`vehicle`), and runs (`tools`): every command goes through `vehicle::Call::send`, which asks
//! whether the call may still command. What comes back is an `answer` with `ok` first, true only where telemetry shows
//! it. Stops go around all of that (`vehicle::brake`). What cameras see comes in through `scene`; what a flight has used
//! up is in `flight`; everything is written down by `run_log`. Read [`Fleet::call`] first.

#![forbid(unsafe_code)]

mod answer;
mod clock;
pub mod config;
mod fleet;
mod flight;
mod geo;
mod guard;
pub mod mavsdk;
mod reserve;
mod run_log;
mod scene;
mod toolbox;
mod tools;
mod vehicle;

pub use fleet::Fleet;
pub use guard::{Caller, Fence, Limits};
pub use toolbox::Drone;

ovos_toolbox_sdk::export_toolbox!(Drone);
