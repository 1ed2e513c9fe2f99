//! The lock of the part that `tests/interleavings.rs` explores with loom; see the engine's.

pub(crate) use std::sync::{Mutex, MutexGuard};
