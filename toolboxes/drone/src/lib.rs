//! Guarded skills for a PX4 vehicle through MAVSDK.
//!
//! The service calls `toolbox`, `fleet` selects the vehicle, `guard` judges the call against the facts from `vehicle`,
//! and `tools` runs it. Every command passes `vehicle::Call::send`, which checks that the call may still command. The
//! result is an `answer` whose `ok` is true only where telemetry confirms it. Stops bypass all of that
//! (`vehicle::brake`). `scene` holds what cameras report, `flight` the limits used up in a flight, and `run_log`
//! records everything. Read [`Fleet::call`] first.
//!
//! ```
//! use drone::config::{Backend, Config};
//!
//! let config: Config = serde_json::from_str(r#"{"backend": "vehicle", "vehicles": [{"id": "one", "url": "udpin://0.0.0.0:14540"}]}"#)?;
//! assert_eq!(config.backend, Backend::Vehicle);
//! assert!(!config.allow_real_vehicle, "a real vehicle needs one more word of its owner");
//! # Ok::<(), serde_json::Error>(())
//! ```

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
mod sentences;
mod toolbox;
mod tools;
mod vehicle;

pub use fleet::Fleet;
pub use guard::{Caller, Fence, Limits};
pub use toolbox::Drone;

ovos_toolbox_sdk::export_toolbox!(Drone);
