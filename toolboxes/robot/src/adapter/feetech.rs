//! Servos on serial buses, Feetech's or Dynamixel's: whatever arms, wheels, head, lift and hitch a robot's file puts there.
//!
//! Owns how actions become goals of servos, and the wait until the goals are reached. Torque goes on when a movement
//! needs it, with the goal at the present position, and never before. The wheels turn on a lease of 300 ms that the
//! running action renews; the bus's thread stops them when the lease ends. The servos have no dead-man: a wheel that
//! turns when the computer loses its power goes on turning. Read [`Feetech`].

mod actions;
mod calibration;
mod config;
mod device;
mod drive;
mod driver;
mod end;
mod health;
mod kept;
#[cfg(test)]
mod late_tests;
mod layout;
mod lerobot;
mod loan;
mod measure;
mod motion;
mod odometry;
mod rehearsal;
mod rest;
mod servo;
mod settings;
mod torque;
mod trial;
mod upkeep;
mod wheels;

pub use self::config::{FeetechConfig, Ports, Unheard};
pub use self::device::Feetech;
pub use self::layout::MotorConfig;
pub(super) use self::servo::round;
pub use self::wheels::BaseSize;
