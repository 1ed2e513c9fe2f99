//! What holds of the checkout as a whole: its edges, its licences, its README, and what a machine may skip.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

mod dependencies;
mod licences;
mod links;
mod readme;
mod skips;
#[path = "../support/lib.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod support;
