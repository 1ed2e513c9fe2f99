//! What the manager knows, under one lock that is never held across a wait.
//!
//! Owns the numbers of generations and the snapshots made of what is known. Decides nothing. Read [`Book`] first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::code::Code;
use super::hosted::Hosted;
use super::services::Origin;
use super::settings::ToolboxConfig;
use super::stage::Fingerprint;
use super::status::{FailedFile, Live, LiveToolbox, State};
use super::supervise::Health;
use super::tools::ToolSet;

/// Everything the manager knows.
#[derive(Default)]
pub(super) struct Book {
    pub(super) slots: BTreeMap<String, Slot>,
    /// Toolboxes whose first copy is being opened.
    pub(super) starting: BTreeSet<String>,
    pub(super) failed: Vec<FailedFile>,
    /// Also those that are being drained: answers to their requests still come.
    pub(super) instances: HashMap<Origin, Weak<dyn Hosted>>,
    /// Instances whose tools changed before they had a slot.
    pub(super) changed_early: HashSet<Origin>,
    /// A loaded library that is not in use, by toolbox id: what failed to open is tried again without loading it again.
    pub(super) spares: HashMap<String, Source>,
    /// Libraries loaded by this manager.
    pub(super) loaded: usize,
    /// How the processes of a toolbox fared.
    pub(super) health: HashMap<String, Health>,
    generations: HashMap<String, u64>,
    stop_epochs: HashMap<String, u64>,
}

/// A library and where it came from.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) code: Code,
    pub(super) path: PathBuf,
    pub(super) sha256: String,
    pub(super) fingerprint: Fingerprint,
}

/// The place of one toolbox.
pub(super) struct Slot {
    pub(super) source: Source,
    pub(super) config: ToolboxConfig,
    pub(super) instance: Arc<dyn Hosted>,
    pub(super) tools: Arc<ToolSet>,
    pub(super) state: State,
}

impl Book {
    /// The number of the next copy of a toolbox.
    pub(super) fn next_generation(&mut self, id: &str) -> u64 {
        let generation = self.generations.entry(id.to_owned()).or_insert(0);
        *generation += 1;
        *generation
    }

    /// The newest stop that any copy of a toolbox knew of.
    pub(super) fn stop_epoch(&mut self, id: &str) -> u64 {
        let known = self.slots.get(id).map_or(0, |slot| slot.instance.stop_epoch());
        let epoch = self.stop_epochs.entry(id.to_owned()).or_insert(0);
        *epoch = (*epoch).max(known);
        *epoch
    }

    /// The toolbox that was loaded from this path.
    pub(super) fn at(&self, path: &Path) -> Option<(&str, &Slot)> {
        self.slots
            .iter()
            .find(|(_, slot)| slot.source.path == path)
            .map(|(id, slot)| (id.as_str(), slot))
    }

    /// These contents, where they are at hand already.
    pub(super) fn loaded_with(&self, sha256: &str) -> Option<Code> {
        let slots = self.slots.values().map(|slot| &slot.source);
        let mut sources = slots.chain(self.spares.values());
        sources
            .find(|source| source.sha256 == sha256)
            .map(|source| source.code.clone())
    }

    /// Puts an instance into its place; returns the one that was there.
    pub(super) fn install(&mut self, slot: Slot) -> Option<Slot> {
        let id = slot.instance.origin().toolbox_id.to_string();
        let epoch = self.stop_epoch(&id);
        slot.instance.raise_stop_epoch(epoch);
        self.spares.remove(&id);
        self.starting.remove(&id);
        self.slots.insert(id, slot)
    }

    /// Takes a toolbox out.
    pub(super) fn remove(&mut self, id: &str) -> Option<Slot> {
        self.stop_epoch(id);
        self.slots.remove(id)
    }

    /// A copy is closed.
    pub(super) fn forget(&mut self, origin: &Origin) {
        self.instances.remove(origin);
        self.changed_early.remove(origin);
    }

    /// What the service is to see.
    pub(super) fn snapshot(&self) -> Arc<Live> {
        Arc::new(Live {
            toolboxes: self.slots.values().map(|slot| slot.live(&self.health)).collect(),
            starting: self.starting.iter().cloned().collect(),
            failed: self.failed.clone(),
        })
    }
}

impl Slot {
    pub(super) fn serves(&self) -> bool {
        self.state == State::Ready
    }

    fn live(&self, health: &HashMap<String, Health>) -> Arc<LiveToolbox> {
        let health = health.get(&*self.instance.origin().toolbox_id);
        let origin = self.instance.origin();
        let instance = Arc::clone(&self.instance);
        Arc::new(LiveToolbox {
            id: Arc::clone(&origin.toolbox_id),
            manifest: Arc::clone(self.instance.manifest()),
            tools: Arc::clone(&self.tools),
            toolbox: instance.clone(),
            isolation: self.config.isolation,
            reading: self.config.reading,
            restarts: health.map_or(0, |health| health.restarts),
            last_death: health.and_then(|health| health.last.clone()),
            generation: origin.generation,
            path: self.source.path.clone(),
            sha256: self.source.sha256.clone(),
            state: self.state.clone(),
            instance,
        })
    }
}
