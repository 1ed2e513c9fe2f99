//! The tools API for its clients: [`payload`] holds what crosses the bus.
#![deny(unsafe_code)]

pub mod payload;
