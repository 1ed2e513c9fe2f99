//! The configuration keeps its promises: the layers in OVOS's order, every value with its origin, every mistake with
//! file, key and what is accepted, and a mistake in one toolbox's section no other's problem.
//!
//! All machines here are made up ([`machine::Machine`]): the process environment is neither read nor written.

#![allow(clippy::unwrap_used, reason = "a test helper that fails fails the test")]

mod changes;
mod example;
mod layers;
mod logging;
mod machine;
mod service;
mod toolbox;
