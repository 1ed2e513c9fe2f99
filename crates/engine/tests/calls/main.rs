//! The engine through its public surface, against a toolbox in memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod drain;
mod examples;
mod fact_order;
mod facts;
mod failure;
mod interleavings;
mod latch;
mod memory_toolbox;
mod moving;
mod properties;
mod reservation;
mod rig;
mod safe;
mod script;
mod stop;
mod timeouts;
mod user_stop;
mod waves;
