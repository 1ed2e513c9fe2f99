//! All toolboxes that the engine has known since its start. The state of one is a [`KnownToolbox`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::known_toolbox::KnownToolbox;
use super::latch::{Latch, StopRecord};
use super::limits::Limits;

/// All toolboxes that the engine has known since its start.
pub(crate) struct KnownToolboxes {
    pub(crate) by_id: BTreeMap<String, Arc<KnownToolbox>>,
    /// A stop that holds every toolbox, including those that are attached later. While it holds, the latch of a single
    /// toolbox is not lifted.
    pub(crate) everything: Option<StopRecord>,
    /// Whether toolboxes are being loaded for the first time.
    pub(crate) starting: bool,
}

impl KnownToolboxes {
    /// The state of a toolbox. An unknown toolbox gets one, which is latched if a stop holds everything.
    pub(crate) fn of(&mut self, toolbox_id: &str, limits: Limits) -> Arc<KnownToolbox> {
        let everything = &self.everything;
        let fresh = || {
            Arc::new(KnownToolbox::new(
                toolbox_id,
                Latch::new(everything.clone()),
                limits,
            ))
        };
        let entry = self.by_id.entry(toolbox_id.to_owned()).or_insert_with(fresh);
        entry.clone()
    }
}
