//! The program as a person meets it. What it does between machines is tested in `tests/programs/fabric.rs` of the service.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]
#[test]
fn x() {}
