//! ovos-tools: gives a voice assistant hands.
#![deny(unsafe_code)]

pub mod config;
pub mod engine;
pub mod logs;
