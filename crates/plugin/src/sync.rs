//! The lock of the files that `tests/interleavings.rs` explores with loom; see the engine's `sync`.

pub(crate) use std::sync::{Mutex, MutexGuard};
