//! The command line: the real binary against a scripted service.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy knows a test by its attribute, and helpers of tests have none"
)]

mod answers;
mod bus;
mod doctor;
mod emergency;
mod help;
mod install_service;
mod invoke;
mod run;
mod scripted;
mod silence;
