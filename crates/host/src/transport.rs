//! Orders and notices between the service and a toolbox in a process of its own: the service's end.

pub(crate) mod child;
pub(crate) mod common_process;
pub(crate) mod greeting;
pub(crate) mod hosted;
#[cfg(test)]
mod hosted_tests;
pub(crate) mod journal;
pub(crate) mod keeper;
pub(crate) mod lanes;
pub(crate) mod members;
#[cfg(test)]
mod members_tests;
pub(crate) mod negative_cache;
pub(crate) mod peer;
pub(crate) mod sent_run;
pub(crate) mod sockets;
