//! The configurations with which the live toolboxes were loaded. Read [`LoadedConfigs`].

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use config::Config;

/// The numbered configurations that toolboxes were loaded with: a copy that a reload could not replace keeps its own.
pub(super) struct LoadedConfigs {
    number: u64,
    pub(super) newest: Arc<Config>,
    /// Older configurations that live toolboxes still use.
    older: BTreeMap<u64, Arc<Config>>,
}

impl LoadedConfigs {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self {
            number: 0,
            newest: config,
            older: BTreeMap::new(),
        }
    }

    /// Adds the newest configuration and returns its number.
    pub(super) fn add(&mut self, config: Arc<Config>) -> u64 {
        let before = std::mem::replace(&mut self.newest, config);
        self.older.insert(self.number, before);
        self.number += 1;
        self.number
    }

    pub(super) fn newest(&self) -> (Arc<Config>, u64) {
        (self.newest.clone(), self.number)
    }

    pub(super) fn get(&self, number: u64) -> Arc<Config> {
        self.older.get(&number).unwrap_or(&self.newest).clone()
    }

    /// Removes the configurations older than `number` that are not in `used`.
    pub(super) fn forget_before(&mut self, number: u64, used: &HashSet<u64>) {
        self.older
            .retain(|older, _| *older >= number || used.contains(older));
    }
}
