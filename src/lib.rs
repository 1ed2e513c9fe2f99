//! ovos-tools: gives a voice assistant hands.
#![deny(unsafe_code)]

pub mod api;
pub mod bus;
pub mod engine;
pub mod registry;
pub mod schema;
