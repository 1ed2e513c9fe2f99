//! The lock of the part that `tests/interleavings.rs` explores with loom; see `engine/sync.rs`.

pub(super) use std::sync::{Mutex, MutexGuard};
