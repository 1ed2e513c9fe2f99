//! The snapshots and reports of the manager: the live toolboxes, the files that failed, and the changes of a reload.
//!
//! Snapshots never change after they were published. Read [`Live`] first.

use std::path::PathBuf;
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;
use serde::Serialize;

use crate::artifact::python::LookedAt;
use crate::artifact::scan::FailedFile;
use crate::contract::tools::ToolSet;
use crate::transport::hosted::Hosted;

/// Every toolbox, and every file that could not be loaded.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Sorted by id.
    pub toolboxes: Vec<Arc<LiveToolbox>>,
    /// Toolboxes whose first copy is being opened; sorted.
    pub starting: Vec<String>,
    /// The files that could not be loaded, in the order of the folders; a toolbox whose replacement failed is in both
    /// lists.
    pub failed: Vec<FailedFile>,
    /// The Python interpreters whose toolboxes are hosted, or could be.
    pub pythons: Vec<LookedAt>,
    /// Toolboxes of plugin files that were not admitted; sorted by id.
    pub off: Vec<Off>,
    /// The ids of all files and programs, also of those that are switched off; sorted.
    pub known: Vec<String>,
}

/// A toolbox that was not admitted. It has no process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Off {
    /// Its id, from the manifest.
    pub toolbox_id: String,
    /// Its file.
    pub path: PathBuf,
    /// Why it was not admitted.
    pub why: NotAdmitted,
}

/// Why a toolbox is not loaded although nothing is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It would drive a simulator, and no configuration asks for it.
    NotAskedFor,
    /// It needs a section, and there is none.
    NoSection,
    /// Its section cannot be read, so it is not known what it drives.
    BackendUnknown,
}

impl Live {
    /// The toolbox with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Arc<LiveToolbox>> {
        let place = self
            .toolboxes
            .binary_search_by(|toolbox| (*toolbox.id).cmp(id))
            .ok()?;
        self.toolboxes.get(place)
    }
}

/// One loaded copy of a toolbox.
#[derive(Clone)]
pub struct LiveToolbox {
    /// Its id, from the manifest.
    pub id: Arc<str>,
    /// Its manifest.
    pub manifest: Arc<Manifest>,
    /// The usable tools, and those that were left out. Shared, because a snapshot is made under the manager's lock.
    pub tools: Arc<ToolSet>,
    /// The toolbox itself. It is closed while the state is `Reloading` or `Failed`: every run is lost then, with a
    /// reason.
    pub toolbox: Arc<Hosted>,
    /// Why it runs without the confinement that the service applies by default.
    pub unconfined: Option<&'static str>,
    /// [`ToolboxSettings::reading`](super::settings::ToolboxSettings::reading) of the newest configuration for which it was
    /// opened or left as it is.
    pub reading: u64,
    /// How often its process was restarted after a death.
    pub restarts: u64,
    /// The reason of the last death of its process.
    pub last_death: Option<String>,
    /// Counted from 1 for each id; never used again.
    pub generation: u64,
    /// Its file.
    pub path: PathBuf,
    /// The hash of that file, in lower-case hex.
    pub sha256: String,
    /// Whether it serves.
    pub state: State,
}

impl std::fmt::Debug for LiveToolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            id,
            generation,
            state,
            path,
            ..
        } = self;
        write!(f, "{id} generation {generation} {state:?} {}", path.display())
    }
}

/// Whether a toolbox serves.
///
/// ```text
///  (file) ── open ──> Ready ── swap ─────────────────────> (drained, halted, closed)
///                      │  ▲
///            exclusive │  │ new or old copy opens
///                      ▼  │
///                  Reloading ── neither opens ──> Failed ── reload ──> Ready
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "reason")]
pub enum State {
    /// It takes calls.
    Ready,
    /// One copy of an exclusive toolbox is closed and the next one not open yet: new calls wait.
    Reloading,
    /// It takes no calls until a reload, for this reason.
    Failed(String),
}

/// What a reload changed, by toolbox id in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReloadReport {
    /// New toolboxes.
    pub added: Vec<String>,
    /// Toolboxes whose file is gone, or that the configuration switches off.
    pub removed: Vec<String>,
    /// Toolboxes with another file or another configuration.
    pub replaced: Vec<String>,
    /// Toolboxes that were left alone.
    pub unchanged: Vec<String>,
    /// Files that could not be loaded. The working copy, if there is one, stays.
    pub broken: Vec<FailedFile>,
}
