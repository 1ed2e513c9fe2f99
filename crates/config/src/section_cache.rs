//! The sections of toolboxes that have none in the files: read once each, because the status asks for them again and again.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::ConfigErrors;
use crate::toolbox::Section;

/// A section, or what is wrong with it.
type SectionResult = Result<Arc<Section>, ConfigErrors>;

/// The sections that were asked for, by toolbox_id. A clone begins empty: its configuration may be changed before it is shared.
#[derive(Debug, Default)]
pub(crate) struct SectionCache(Mutex<BTreeMap<String, SectionResult>>);

impl SectionCache {
    /// The section of a toolbox, which `read` reads if it has not been asked for before.
    pub(crate) fn section(&self, id: &str, read: impl FnOnce() -> SectionResult) -> SectionResult {
        let mut entries = self.0.lock();
        if let Some(section) = entries.get(id) {
            return section.clone();
        }
        entries.entry(id.to_owned()).or_insert_with(read).clone()
    }
}

impl Clone for SectionCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}
