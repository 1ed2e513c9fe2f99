//! What outlives the process that hosts toolboxes: which of them are in emergency stop, and which move.

mod folder;
mod writer;

pub use folder::StateFolder;
pub use writer::{ANSWER, StateWriter, Store, Work};
