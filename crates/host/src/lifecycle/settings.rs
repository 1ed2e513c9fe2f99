//! The settings of the manager, and the traits through which it uses the service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::Object;

use crate::artifact::probe::Probe;
use crate::contract::services::Limits;
use crate::lifecycle::status::Live;
use crate::process::confine::Confine;

/// The settings of the manager.
#[derive(Clone)]
pub struct Settings {
    /// The folders that are searched for `*.so` files, in this order; a missing folder is skipped.
    pub plugin_dirs: Vec<PathBuf>,
    /// The folders for private copies, the best one first; `Stage::new` lists those that are tried after these.
    pub stage_dirs: Vec<PathBuf>,
    /// How many libraries may be loaded until a restart is needed, since none can be unloaded. Default 64.
    pub max_generations: usize,
    /// How long running calls of a replaced toolbox may continue. Default 10 s.
    pub drain: Duration,
    /// How files are probed.
    pub probe: Probe,
    /// How often a toolbox's process may die within a minute before it is not restarted until a reload; 0: without
    /// limit. Default 5.
    pub max_failures: u32,
    /// The delay before the first restart of a dead process; it doubles with every further one. Default 0.2 s.
    pub first_restart: Duration,
    /// The longest of those delays. Default 30 s.
    pub max_restart: Duration,
    /// The hashes of the files that may be loaded; empty: any file.
    pub allow_sha256: Vec<String>,
    /// Returns the configuration of a toolbox; called again at every reload.
    pub config: ConfigSource,
}

impl Settings {
    /// The defaults, for toolboxes that need no configuration.
    #[must_use]
    pub fn new(plugin_dirs: Vec<PathBuf>, probe: Probe) -> Self {
        Self {
            plugin_dirs,
            stage_dirs: Vec::new(),
            max_generations: 64,
            drain: Duration::from_secs(10),
            probe,
            max_failures: 5,
            first_restart: Duration::from_millis(200),
            max_restart: Duration::from_secs(30),
            allow_sha256: Vec::new(),
            config: Arc::new(|_| Ok(ToolboxConfig::default())),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("plugin_dirs", &self.plugin_dirs)
            .finish_non_exhaustive()
    }
}

/// Where a toolbox runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// In this process.
    InProcess,
    /// In a process of its own.
    #[default]
    Process,
}

impl Isolation {
    /// The word used in the configuration and on the bus.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Process => "process",
        }
    }
}

/// Returns the configuration of a toolbox by its id, or why it is wrong.
pub type ConfigSource = Arc<dyn Fn(&str) -> Result<ToolboxConfig, String> + Send + Sync>;

/// The part of the configuration that concerns one toolbox. A toolbox is replaced when any of it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolboxConfig {
    /// Whether it is loaded.
    pub enabled: bool,
    /// The toolbox's own keys, which the manifest's `config_schema` validates and `open` gets.
    pub section: Object,
    /// The hashes that its file may have; empty: any.
    pub allow_sha256: Vec<String>,
    /// Its limits.
    pub limits: Limits,
    /// Where it runs.
    pub isolation: Isolation,
    /// The memory that its process may use, in MiB.
    pub memory_mb: Option<u64>,
    /// What its process may access; without it, everything that the service may.
    pub confine: Option<Confine>,
    /// Variables added to the environment of its process.
    pub env: BTreeMap<String, String>,
    /// The number of the reading of the configuration that this belongs to, for the service. A new number alone
    /// replaces no toolbox.
    pub reading: u64,
}

impl ToolboxConfig {
    /// Whether a toolbox that was opened with `other` need not be replaced.
    pub(crate) fn keeps(&self, other: &Self) -> bool {
        let same_reading = Self {
            reading: other.reading,
            ..self.clone()
        };
        same_reading == *other
    }
}

impl Default for ToolboxConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            section: Object::new(),
            allow_sha256: Vec::new(),
            limits: Limits::default(),
            isolation: Isolation::default(),
            memory_mb: None,
            confine: None,
            env: BTreeMap::new(),
            reading: 0,
        }
    }
}

/// How the service takes a loaded copy out of use.
pub trait Drain: Send + Sync + 'static {
    /// Refuses new calls for this copy and waits until no call uses it. After `limit` (at once, if it is zero),
    /// cancels the remaining calls, ends their motion and gives the machine time to come to rest; resolves after that
    /// in any case.
    fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) -> BoxFuture<'static, ()>;

    /// Reports that this copy was drained and is closed. Before that a stop has to reach it.
    fn closed(&self, _toolbox_id: &str, _generation: u64) {}
}

/// Makes a snapshot the current one. Called for one snapshot at a time, in order; snapshots that were overtaken are
/// left out. Must not wait for the manager.
pub type Publish = Arc<dyn Fn(Arc<Live>) + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolbox_runs_apart_unless_the_configuration_says_otherwise() {
        assert_eq!(ToolboxConfig::default().isolation, Isolation::Process);
    }
}
