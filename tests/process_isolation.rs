//! `isolation: process`: the promises of a toolbox's life, and what only a process of its own survives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/rig.rs"]
mod rig;

const ISOLATION: ovos_tools::plugin::Isolation = ovos_tools::plugin::Isolation::Process;
