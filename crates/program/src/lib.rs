//! A toolbox as a program of its own: the other end of the protocol.
//!
//! Owns what every such program is made of: it takes the two sockets, says hello, serves the data lane and the control lane on
//! a thread each, puts starts, cancels and stops in order, and brings everything to rest when the service is gone. The service's
//! own `toolbox-host`, the mounts and programs of other authors use it. Read [`Toolbox`], then [`run`].
//!
//! What both ends of a lane need is here, too, for the service to use: [`frame`], [`lane`], [`data_lane`], [`json`], [`message_limits`].
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod control;
mod counts;
pub mod data_lane;
pub mod frame;
mod greeting;
pub mod json;
pub mod lane;
mod link;
pub mod message_limits;
mod notices;
pub mod payload;
mod process;
mod rate;
mod run;
mod server;
#[cfg(test)]
mod server_tests;
mod sockets;
mod start;
mod toolbox;

pub use counts::Counters;
pub use greeting::{GreetedProcess, ProcessHandle, hello};
pub use link::Link;
pub use message_limits::level;
pub use notices::{Later, Notices};
pub use ovos_toolbox_wire as wire;
pub use protocol;
pub use run::{Run, Steps};
pub use server::moves;
pub use sockets::{CONTROL, DATA, Sockets, input, kill_self, stand_alone, take_leash};
pub use start::{print_and_exit, run, run_as};
pub use toolbox::{Halt, Refusal, Reply, Toolbox};
