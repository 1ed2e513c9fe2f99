//! What a tool's schema makes of arguments.

#![allow(
    clippy::unwrap_used,
    reason = "clippy takes helpers of tests for production code"
)]

mod arguments;
mod coercion;
