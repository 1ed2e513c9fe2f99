//! ovos-tools: gives a voice assistant hands.
#![deny(unsafe_code)]

pub mod bus;
pub mod engine;
pub mod schema;
