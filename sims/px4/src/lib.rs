//! A simulated PX4 vehicle on MAVLink, including the quirks of the real one.
//!
//! [`Vehicle`] is the machine, pure and on virtual time; [`world`] holds the objects around it; [`link`] is its MAVLink
//! interface, messages in and out; [`serve`] adds a UDP socket, a clock, a scene file and a control channel. Each layer
//! works without the later ones. [`feeder`] provides perception for a vehicle in another simulation.
//!
//! ```
//! use px4_sim::{Home, Quirks, Vehicle, World};
//!
//! let vehicle = Vehicle::new(Home::default(), Quirks::all(), World::default());
//! assert!(!vehicle.armed());
//! ```

pub mod control;
pub mod feeder;
pub mod fence;
pub mod geo;
pub mod link;
pub mod log;
pub mod mission;
pub mod mode;
pub mod params;
pub mod quirks;
pub mod scene;
pub mod serve;
pub mod vehicle;
pub mod world;

pub use geo::Home;
pub use log::Ack;
pub use mode::Mode;
pub use quirks::{Quirk, Quirks};
pub use vehicle::{Landed, Vehicle};
pub use world::World;
