//! placeholder
pub mod config;
pub mod logs;
