//! A simulated PX4 vehicle on MAVLink, with the awkward behaviour of the real one.
//!
//! [`Vehicle`] is the machine, pure and on virtual time; [`world`] is what stands around it; [`link`] speaks MAVLink for
//! it, message in, messages out; [`serve`] puts all of it on a UDP socket with a clock, a scene file and a control
//! channel. Tests may use any layer without the ones after it. [`feeder`] lends the eyes to a vehicle that flies elsewhere.

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
pub use mode::Mode;
pub use quirks::{Quirk, Quirks};
pub use vehicle::{Ack, Landed, Vehicle};
pub use world::World;
