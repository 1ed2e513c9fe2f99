//! The client on a bus, and what its requests and answers are made of.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

mod calls;
mod connection;
mod payload;
mod rig;
