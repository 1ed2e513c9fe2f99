//! Orders and notices: what both sides may rely on, and what the page about them says.

#![allow(clippy::unwrap_used, reason = "a failed test panics and prints")]

mod compatibility;
mod documentation;
