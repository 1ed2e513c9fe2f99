//! Servos on serial buses: Feetech's and Dynamixel's.
//!
//! Owns the ports. One thread for each port reads and writes it and ends every wheel's motion. It knows registers and
//! steps; the adapter knows joints, degrees and limits. Nothing here enables torque or moves without a job that says
//! so. Read [`ServoBus`].

mod answer;
mod error;
mod exchange;
mod frame;
mod health;
mod holders;
mod owner;
mod packet;
mod port;
mod queue;
mod register;
mod rehearsed;
mod voices;
mod wire;

pub(crate) use error::ServoError;
pub(crate) use exchange::Exchange;
pub(crate) use health::{Calibration, Health, State};
pub(crate) use holders::holders;
pub(crate) use owner::{Changed, LISTENS, Line, ServoBus};
#[cfg(test)]
pub(crate) use port::Port;
pub(crate) use queue::{Pending, Sender, Then, Urgency};
pub(crate) use register::{Family, Register};
pub(crate) use rehearsed::{SimulatedLine, servos};
pub(crate) use wire::Wire;
