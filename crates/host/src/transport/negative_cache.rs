//! Tools that have no plan, or no conclusion, of their own. Read [`NegativeCache`].

use std::collections::HashSet;

use parking_lot::RwLock;

/// The names of tools about which the toolbox need not be asked: a question costs a call two switches of threads, or of
/// processes.
#[derive(Debug, Default)]
pub(crate) struct NegativeCache(RwLock<Names>);

#[derive(Debug, Default)]
struct Names {
    tools: HashSet<String>,
    /// The version of the tool list.
    version: u64,
}

impl NegativeCache {
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.0.read().tools.contains(tool)
    }

    /// The version of the tool list, to be read before a tool is asked.
    pub(crate) fn version(&self) -> u64 {
        self.0.read().version
    }

    /// Remembers that a tool has none. An answer from before a change of the tools is ignored.
    pub(crate) fn note(&self, tool: String, version: u64) {
        let mut names = self.0.write();
        if names.version == version {
            names.tools.insert(tool);
        }
    }

    /// Forgets all names, because the tools may have changed.
    pub(crate) fn forget(&self) {
        let mut names = self.0.write();
        names.tools.clear();
        names.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_from_before_the_tools_changed_is_not_remembered() {
        let without = NegativeCache::default();
        let version = without.version();
        without.forget();
        without.note("old".to_owned(), version);
        without.note("new".to_owned(), without.version());
        assert_eq!((without.has("old"), without.has("new")), (false, true));
        without.forget();
        assert!(!without.has("new"));
    }
}
