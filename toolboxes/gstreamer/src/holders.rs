//! Which instances hold which devices.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::policy::canonical_device;

/// The devices that are in use, for a process that does not know the instances.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Holders {
    held: HashMap<String, String>,
    /// How many instances run.
    pub(crate) running: usize,
}

impl Holders {
    /// `held` maps the canonical name of a device to the id of the instance that holds it.
    pub(crate) fn new(held: HashMap<String, String>, running: usize) -> Self {
        Self { held, running }
    }

    /// The instance that holds a device, such as `/dev/video0` or `hw:0,0`.
    pub(crate) fn owner_of(&self, device: &str) -> Option<String> {
        let name = canonical_device(device).ok()?;
        let owner = self.held.get(&name);
        // A sound card that an instance only plays on is held under a name of its own.
        owner
            .or_else(|| self.held.get(&format!("{name} (playback)")))
            .cloned()
    }
}
