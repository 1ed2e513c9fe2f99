//! Orders and notices between the service and a toolbox, in this process or in a process of its own; the code of both
//! ends.

pub(crate) mod child;
pub(crate) mod common_process;
pub(crate) mod data_lane;
pub(crate) mod frame;
pub(crate) mod greeting;
pub(crate) mod hosted;
#[cfg(test)]
mod hosted_tests;
pub(crate) mod keeper;
pub(crate) mod lane_socket;
pub(crate) mod lanes;
pub(crate) mod members;
#[cfg(test)]
mod members_tests;
pub(crate) mod peer;
pub(crate) mod process_log;
pub(crate) mod sent;
pub mod serve;
pub(crate) mod sockets;
pub(crate) mod without;
