//! The C table of a toolbox and the threads that call it. The only unsafe code of the service.

pub(crate) mod answer;
pub(crate) mod bytes;
pub(crate) mod callbacks;
pub(crate) mod control;
pub(crate) mod host_queue;
pub(crate) mod host_thread;
pub(crate) mod journal;
pub(crate) mod load;
pub(crate) mod plugin;
pub(crate) mod rate;
pub(crate) mod runs;
#[cfg(test)]
pub(crate) mod runs_tests;
pub(crate) mod server;
pub(crate) mod sync;
pub(crate) mod table;
pub(crate) mod unasked;
pub(crate) mod wake_lock;
pub(crate) mod watchdog;
