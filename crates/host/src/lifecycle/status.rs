//! What the manager publishes: the toolboxes that live, the files that do not, and what a reload changed.
//!
//! Snapshots, never changed after they were published. Read [`Live`] first.

use std::path::PathBuf;
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;
use protocol::Counts;
use serde::Serialize;

use crate::artifact::scan::FailedFile;
use crate::contract::tools::ToolSet;
use crate::lifecycle::settings::Isolation;
use crate::transport::hosted::Hosted;
use engine::Toolbox;

/// Every toolbox and every file that could not become one.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Sorted by id.
    pub toolboxes: Vec<Arc<LiveToolbox>>,
    /// Toolboxes whose first copy is being opened; sorted.
    pub starting: Vec<String>,
    /// In the order of the folders; a toolbox whose replacement failed is in both lists.
    pub failed: Vec<FailedFile>,
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
    /// From the manifest.
    pub id: Arc<str>,
    /// What it says about itself.
    pub manifest: Arc<Manifest>,
    /// The tools that can be used, and those that cannot. Shared: a snapshot is made under the manager's lock.
    pub tools: Arc<ToolSet>,
    /// What the engine drives. Closed while the state is `Reloading` or `Failed`: then every run is lost with a reason.
    pub toolbox: Arc<dyn Toolbox>,
    /// Where it runs.
    pub isolation: Isolation,
    /// [`ToolboxConfig::reading`](super::ToolboxConfig::reading) of what it was opened with, or was left alone for.
    pub reading: u64,
    /// How often its process was started again after it had died.
    pub restarts: u64,
    /// How its process died last.
    pub last_death: Option<String>,
    /// Counted from 1 for each id; never used again.
    pub generation: u64,
    /// The file it was found in.
    pub path: PathBuf,
    /// Of that file's contents, in lower-case hex.
    pub sha256: String,
    /// Whether it serves.
    pub state: State,
    pub(crate) instance: Arc<Hosted>,
}

impl LiveToolbox {
    /// Its process, where it has one of its own.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.instance.pid()
    }

    /// What was dropped at the boundary so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.instance.counts()
    }
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
    /// It serves.
    Ready,
    /// An exclusive toolbox is between two copies: new calls wait.
    Reloading,
    /// It does not serve, for this reason, until a reload.
    Failed(String),
}

/// What a reload changed, by toolbox id in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReloadReport {
    /// New.
    pub added: Vec<String>,
    /// Gone: the file disappeared or the configuration switches it off.
    pub removed: Vec<String>,
    /// Another file or another configuration.
    pub replaced: Vec<String>,
    /// Left alone.
    pub unchanged: Vec<String>,
    /// Files that did not make it. Their working copy, if there was one, still serves.
    pub broken: Vec<FailedFile>,
}
