//! ovos-tools: gives a voice assistant hands.
#![deny(unsafe_code)]

pub mod bus;
pub mod cli;
pub mod config;
pub mod engine;
pub mod logs;
