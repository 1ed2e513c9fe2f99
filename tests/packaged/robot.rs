//! Robots through the service: every tool, at random, with hardware that is emulated and with a robot that is away.

mod away;
#[path = "../../toolboxes/robot/tests/support/calls.rs"]
mod calls;
mod files;
mod hardware;
#[path = "../../toolboxes/robot/tests/support/peers.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
pub(crate) mod peers;
mod random;
pub(crate) mod ros_base;
mod service;
