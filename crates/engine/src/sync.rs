//! The locks and atomics of the parts that `tests/interleavings.rs` explores with loom.
//!
//! Those files name them through `super::sync`, so the test can compile the same files against loom's.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
