//! The Unitree Go2 over DDS: its sport service.
//!
//! Owns the translation. A velocity is repeated while an action runs, and ended by a thread; a stop is the vendor's `StopMove`,
//! which ends the robot's own routines, too. How far it has gone is what it says of itself. Read `robot`.

mod config;
mod driver;
mod robot;
mod sport;

pub use self::config::UnitreeGo2Config;
