//! What the tests of the service share: processes, a bus, a service on it, clients of it, and the packages and fixtures they need.

pub(crate) mod client;
pub(crate) mod console;
pub(crate) mod contract;
pub(crate) mod fabric;
pub(crate) mod figures;
pub(crate) mod fixture;
pub(crate) mod kernel;
pub(crate) mod mcp;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod python;
pub(crate) mod rig;
pub(crate) mod robot;
pub(crate) mod scene;
pub(crate) mod service;
pub(crate) mod service_with_bus;
pub(crate) mod stage;
pub(crate) mod stalled_disk;
pub(crate) mod status;
pub(crate) mod versions;
