//! placeholder
pub mod bus;
