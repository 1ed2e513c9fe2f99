//! The locks and atomics of the files that `tests/interleavings.rs` explores with loom.
//!
//! Those files import them through `super::sync`, so that the test can compile the same files with loom's types.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
