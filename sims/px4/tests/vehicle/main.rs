//! The simulated vehicle: its rules, its quirks, its events, and that the published mavsdk_server accepts it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

mod events;
mod mavsdk_server;
mod quirks;
mod rules;
