//! The toolbox: what it lists, what it accepts and refuses, and pipelines that run, fail, stop and come back.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a failed test panics and prints"
)]

mod discovery;
mod inspect;
mod policy;
mod recovery;
#[path = "../support/rig.rs"]
mod rig;
mod running;
mod schemas;
mod streaming;
mod validation;
