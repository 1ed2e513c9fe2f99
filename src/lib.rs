//! ovos-tools: gives a voice assistant hands.
#![deny(unsafe_code)]

pub mod api;
pub mod bus;
pub mod cli;
pub mod config;
pub mod engine;
pub mod export;
pub mod logs;
pub mod plugin;
pub mod registry;
pub mod schema;
pub mod service;
