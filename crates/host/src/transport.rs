//! Orders and notices between the service and a toolbox's own process, at both ends.

pub(crate) mod child_toolbox;
pub(crate) mod frame;
pub(crate) mod keeper;
pub(crate) mod outlet;
pub(crate) mod process_log;
pub mod serve;
pub(crate) mod tether;
