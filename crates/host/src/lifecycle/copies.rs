//! The state of the manager, under one lock that is never held across a wait.
//!
//! Numbers the generations, and makes the snapshots. Decides nothing. Read [`Copies`] first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Weak};

use ovos_toolbox_wire::Event;

use crate::artifact::python::LookedAt;
use crate::artifact::scan::FailedFile;
use crate::contract::services::Origin;
use crate::contract::tools::ToolSet;
use crate::lifecycle::claims::Owners;
use crate::lifecycle::code::{Code, Source};
use crate::lifecycle::common_program::CommonProgram;
use crate::lifecycle::health::Health;
use crate::lifecycle::settings::ToolboxSettings;
use crate::lifecycle::status::{Live, LiveToolbox, Off, State};
use crate::process::confine::why_unconfined;
use crate::transport::hosted::Hosted;

/// The state of the manager.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) slots: BTreeMap<String, Slot>,
    /// Toolboxes whose first copy is being opened.
    pub(crate) starting: BTreeSet<String>,
    pub(crate) failed: Vec<FailedFile>,
    pub(crate) pythons: Vec<LookedAt>,
    /// The toolboxes that were not admitted.
    pub(crate) off: Vec<Off>,
    /// All open copies, including copies that are being drained, whose answers still arrive, and copies that are being
    /// opened.
    pub(crate) instances: HashMap<Origin, Weak<Hosted>>,
    /// Copies whose tools changed before they had a slot, each with its `tools_changed` event.
    pub(crate) changed_early: HashMap<Origin, Event>,
    /// Staged files that are not in use, by toolbox id: a copy that failed to open is opened again from the same one.
    pub(crate) spares: HashMap<String, Source>,
    /// The programs that are several toolboxes, by name.
    pub(crate) programs: HashMap<String, Arc<CommonProgram>>,
    /// The owner of each toolbox id since the last reload.
    pub(crate) owners: Owners,
    /// The failures of a toolbox's processes.
    pub(crate) health: HashMap<String, Health>,
    generations: HashMap<String, u64>,
    stop_epochs: HashMap<String, u64>,
}

/// The live copy of one toolbox.
pub(crate) struct Slot {
    pub(crate) source: Source,
    pub(crate) config: ToolboxSettings,
    pub(crate) instance: Arc<Hosted>,
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) state: State,
}

impl Copies {
    /// The number of the next copy of a toolbox.
    pub(crate) fn next_generation(&mut self, id: &str) -> u64 {
        let generation = self.generations.entry(id.to_owned()).or_insert(0);
        *generation += 1;
        *generation
    }

    /// The newest stop epoch that any copy of a toolbox knew.
    pub(crate) fn stop_epoch(&mut self, id: &str) -> u64 {
        let stop_epoch = self.slots.get(id).map_or(0, |slot| slot.instance.stop_epoch());
        let epoch = self.stop_epochs.entry(id.to_owned()).or_insert(0);
        *epoch = (*epoch).max(stop_epoch);
        *epoch
    }

    /// The toolbox that was loaded from this plugin file.
    pub(crate) fn at(&self, path: &Path) -> Option<(&str, &Slot)> {
        self.all(move |source| source.program().is_none() && source.path == path)
            .next()
    }

    /// The toolboxes of the program with this name.
    pub(crate) fn of_program(&self, name: &str) -> impl Iterator<Item = (&str, &Slot)> {
        self.all(move |source| source.program() == Some(name))
    }

    /// Whether the program is still the one of its name.
    pub(crate) fn is_current(&self, program: &Arc<CommonProgram>) -> bool {
        let current = self.programs.get(&program.entry.name);
        current.is_some_and(|current| Arc::ptr_eq(current, program))
    }

    /// Gives a name to a program, or to none; returns the program that had the name before. The caller drops it after the
    /// lock is released, because the drop may end its process.
    pub(crate) fn replace_program(
        &mut self,
        name: &str,
        program: Option<Arc<CommonProgram>>,
    ) -> Option<Arc<CommonProgram>> {
        match program {
            Some(program) => self.programs.insert(name.to_owned(), program),
            None => self.programs.remove(name),
        }
    }

    /// Keeps the code of a toolbox that did not open, for the next time. A program of several toolboxes is kept with
    /// these anyway.
    pub(crate) fn spare(&mut self, id: &str, source: Source) {
        if source.code.common().is_none() {
            self.spares.insert(id.to_owned(), source);
        }
    }

    fn all(&self, fits: impl Fn(&Source) -> bool) -> impl Iterator<Item = (&str, &Slot)> {
        let found = self.slots.iter().filter(move |(_, slot)| fits(&slot.source));
        found.map(|(id, slot)| (id.as_str(), slot))
    }

    /// The code of a plugin file with this hash, if it is staged already.
    pub(crate) fn loaded_with(&self, sha256: &str) -> Option<Code> {
        let slots = self.slots.values().map(|slot| &slot.source);
        let mut sources = slots.chain(self.spares.values());
        sources
            .find(|source| source.program().is_none() && source.sha256 == sha256)
            .map(|source| source.code.clone())
    }

    /// Makes a copy the live one; returns the copy before it.
    pub(crate) fn install(&mut self, slot: Slot) -> Option<Slot> {
        let id = slot.instance.origin().toolbox_id.to_string();
        let epoch = self.stop_epoch(&id);
        slot.instance.raise_stop_epoch(epoch);
        self.spares.remove(&id);
        self.starting.remove(&id);
        self.slots.insert(id, slot)
    }

    /// Removes a toolbox.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Slot> {
        self.stop_epoch(id);
        self.slots.remove(id)
    }

    /// Forgets a closed copy.
    pub(crate) fn forget(&mut self, origin: &Origin) {
        self.instances.remove(origin);
        self.changed_early.remove(origin);
    }

    /// The snapshot for the service.
    pub(crate) fn snapshot(&self) -> Arc<Live> {
        Arc::new(Live {
            toolboxes: self.slots.values().map(|slot| slot.live(&self.health)).collect(),
            starting: self.starting.iter().cloned().collect(),
            failed: self.failed.clone(),
            pythons: self.pythons.clone(),
            off: self.off.clone(),
            known: {
                let mut ids: Vec<String> = self.owners.keys().cloned().collect();
                ids.sort();
                ids
            },
        })
    }
}

impl Slot {
    pub(crate) fn serves(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether its copy serves, or will serve again, with this code.
    pub(crate) fn has(&self, source: &Source) -> bool {
        let code = &self.source.code;
        match (code.common(), source.code.common()) {
            // The supervisor takes care of a toolbox that is being brought back.
            (Some(program), Some(other)) => {
                Arc::ptr_eq(program, other)
                    && !matches!(self.state, State::Failed(_))
                    && code.manifest() == source.code.manifest()
            }
            (None, None) => {
                self.serves()
                    && code.executable() == source.code.executable()
                    && self.source.sha256 == source.sha256
            }
            _ => false,
        }
    }

    fn live(&self, health: &HashMap<String, Health>) -> Arc<LiveToolbox> {
        let health = health.get(&*self.instance.origin().toolbox_id);
        let origin = self.instance.origin();
        Arc::new(LiveToolbox {
            id: Arc::clone(&origin.toolbox_id),
            manifest: Arc::clone(self.instance.manifest()),
            tools: Arc::clone(&self.tools),
            toolbox: Arc::clone(&self.instance),
            unconfined: self.config.toolbox.confine.as_ref().and_then(why_unconfined),
            reading: self.config.reading,
            restarts: health.map_or(0, |health| health.restarts),
            last_death: health.and_then(|health| health.last.clone()),
            generation: origin.generation,
            path: self.source.path.clone(),
            sha256: self.source.sha256.clone(),
            state: self.state.clone(),
        })
    }
}
