//! The built library, driven through its C table.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod hostile;
mod reference;
mod schemas;
