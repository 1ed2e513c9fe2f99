//! Tools that have no plan, or no conclusion, of their own. Read [`Without`].

use std::collections::HashSet;

use ovos_toolbox_wire::Failure;
use parking_lot::RwLock;

/// Names of tools that need not be asked: a question costs a call two switches of threads. Written on the host thread
/// only, so that an answer from before the tools changed never outlives the change.
#[derive(Debug, Default)]
pub(super) struct Without(RwLock<HashSet<String>>);

impl Without {
    pub(super) fn has(&self, tool: &str) -> bool {
        self.0.read().contains(tool)
    }

    /// Remembers what a tool answered.
    pub(super) fn note<T>(&self, tool: String, answer: &Result<Option<T>, Failure>) {
        if matches!(answer, Ok(None)) {
            self.0.write().insert(tool);
        }
    }

    pub(super) fn forget(&self) {
        self.0.write().clear();
    }
}
