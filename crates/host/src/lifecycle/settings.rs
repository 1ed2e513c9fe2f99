//! What the manager is told by the service.

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

/// How plugins are found and loaded.
#[derive(Clone)]
pub struct Settings {
    /// Where `*.so` files are looked for, in this order; a folder that does not exist is passed over.
    pub plugin_dirs: Vec<PathBuf>,
    /// Where private copies may go, the best place first; see `Stage::new` for what comes after these.
    pub stage_dirs: Vec<PathBuf>,
    /// Libraries that may be loaded until a restart is needed, since none can be unloaded. Default 64.
    pub max_generations: usize,
    /// How long running calls of a replaced toolbox have. Default 10 s.
    pub drain: Duration,
    /// How files are tried in a child process first.
    pub probe: Probe,
    /// How often a toolbox's process may die within a minute before it is left alone until a reload; 0: any number of
    /// times. Default 5.
    pub max_failures: u32,
    /// How long the first restart of a dead process waits; every further one twice as long. Default 0.2 s.
    pub first_restart: Duration,
    /// The longest of those waits. Default 30 s.
    pub max_restart: Duration,
    /// Hashes of the files that may be loaded at all; empty: all of them.
    pub allow_sha256: Vec<String>,
    /// The configuration of a toolbox, by id; asked again at every reload.
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

/// Gives a toolbox's configuration, or what is wrong with it.
pub type ConfigSource = Arc<dyn Fn(&str) -> Result<ToolboxConfig, String> + Send + Sync>;

/// The part of the configuration that concerns one toolbox. A toolbox is replaced when any of it changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolboxConfig {
    /// Whether it is loaded.
    pub enabled: bool,
    /// What is validated by the manifest's `config_schema` and handed to `open`.
    pub section: Object,
    /// Hashes that its file may have; empty: any.
    pub allow_sha256: Vec<String>,
    /// Bounds.
    pub limits: Limits,
    /// Where it runs.
    pub isolation: Isolation,
    /// Memory its process may use, in MiB.
    pub memory_mb: Option<u64>,
    /// What its process may reach; everything the service may, where there is none.
    pub confine: Option<Confine>,
    /// Added to the environment of its process.
    pub env: BTreeMap<String, String>,
    /// Which reading of the configuration this is of: for the service, which knows what else that says. Replaces nothing.
    pub reading: u64,
}

impl ToolboxConfig {
    /// Whether what was opened with `other` need not be replaced.
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

/// The service's side of taking a loaded copy out of use.
pub trait Drain: Send + Sync + 'static {
    /// Takes no new calls for this copy and waits until no call uses it. When `limit` is up (at once, for zero), cancels
    /// what is left, ends its motion and gives the machine its time to come to rest; resolves after that in any case.
    fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) -> BoxFuture<'static, ()>;

    /// This copy was drained and is closed. Until now a stop has to reach it.
    fn closed(&self, _toolbox_id: &str, _generation: u64) {}
}

/// Makes a snapshot the current one. Called for one snapshot at a time and in their order; one that was overtaken is left out.
/// Must not wait for the manager.
pub type Publish = Arc<dyn Fn(Arc<Live>) + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolbox_runs_apart_unless_the_configuration_says_otherwise() {
        assert_eq!(ToolboxConfig::default().isolation, Isolation::Process);
    }
}
