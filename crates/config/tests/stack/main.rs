//! Tests of the configuration: the layers in OVOS's order, the origin of every value, error messages that name the
//! file, the key and what is accepted, and errors in a toolbox's section that affect only that toolbox.
//!
//! All machines here are test machines ([`machine::Machine`]): the process environment is neither read nor changed.

#![allow(clippy::unwrap_used, reason = "a test helper that fails fails the test")]

mod changes;
mod closed;
mod doors;
mod edit;
mod example;
mod layers;
mod logging;
mod machine;
mod mounts;
mod programs;
mod service;
mod toolbox;
