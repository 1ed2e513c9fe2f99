//! The files that a command of the configuration executes, and whether another user could have put them there.
//!
//! Whoever executes something that a person has named asks here first: the host for toolboxes and programs, a toolbox for programs of
//! its own section. Read [`check::file`].
#![forbid(unsafe_code)]

pub mod check;
pub mod command;
