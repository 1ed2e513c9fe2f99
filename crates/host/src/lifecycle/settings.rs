//! The settings of the manager, and the traits through which it uses the service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ovos_toolbox_wire::Manifest;

use crate::artifact::greeter::Greeter;
use crate::artifact::program::server_of;
use crate::contract::services::Limits;
use crate::lifecycle::health::{FIRST_RESTART, MAX_RESTART};
use crate::lifecycle::status::{Live, NotAdmitted};
use crate::process::default_confinement::file_identities;
use section::{ProgramConfig, PythonConfig, ToolboxConfig};

/// The smallest time limit for the opening of a toolbox of a Python interpreter: a dozen of them import their packages
/// one after the other.
pub(crate) const PYTHON_OPEN: Duration = Duration::from_secs(60);

/// The settings of the manager.
#[derive(Clone)]
pub struct Settings {
    /// The folders that are searched for `*.so` files, in this order; a missing folder is skipped.
    pub plugin_dirs: Vec<PathBuf>,
    /// The folders for private copies, the best one first; `Stage::new` lists those that are tried after these.
    pub stage_dirs: Vec<PathBuf>,
    /// The folder in which each toolbox has a folder of its own, named by its id, for the files that it returns as
    /// content; `None`: no toolbox has such a folder.
    pub content_dir: Option<PathBuf>,
    /// How long running calls of a replaced toolbox may continue. Default 10 s.
    pub drain: Duration,
    /// How files are probed.
    pub greeter: Greeter,
    /// How often a toolbox's process may die within a minute before it is not restarted until a reload; 0: without
    /// limit. Default 5.
    pub max_failures: u32,
    /// The delay before the first restart of a dead process; it doubles with every further one. Default 0.2 s.
    pub first_restart: Duration,
    /// The longest of those delays. Default 30 s.
    pub max_restart: Duration,
    /// Returns the configuration of a toolbox; called again at every reload.
    pub config: ConfigSource,
    /// As `config`, for a toolbox that is a mounted server.
    pub mounted: ConfigSource,
    /// Decides which toolboxes of plugin files are loaded; called again at every reload.
    pub admit: Admission,
    /// Returns the programs that are to be toolboxes, in their order; called again at every reload.
    pub programs: ProgramSource,
    /// Returns the Python interpreters whose toolboxes are hosted; called again at every reload.
    pub pythons: PythonSource,
}

impl Settings {
    /// The present configuration of a toolbox: of a program with this entry, or else of a plugin file.
    ///
    /// # Errors
    /// The configuration is wrong; the text says why.
    pub(crate) fn configured(
        &self,
        entry: Option<&ProgramConfig>,
        id: &str,
    ) -> Result<ToolboxSettings, String> {
        let Some(entry) = entry else {
            return Ok(seen_of((self.config)(id)?));
        };
        let source = match entry.mounted {
            Some(_) => &self.mounted,
            None => &self.config,
        };
        let mut configured = seen_of(source(id)?);
        let ToolboxConfig {
            env, confine, own, ..
        } = &mut configured.toolbox;
        if entry.revisions.is_some() {
            if !env.is_empty() {
                // The adapters among OPM's toolboxes have a key of this name, too.
                own.insert("env".to_owned(), serde_json::json!(env));
            }
            configured.limits.open = configured.limits.open.max(PYTHON_OPEN);
        }
        // The program has to start the command that was checked.
        if let Some(server) = server_of(entry)? {
            own.insert("command".to_owned(), serde_json::json!(server));
        }
        let of_section = std::mem::replace(env, entry.env.clone());
        env.extend(of_section);
        if entry.confine.is_some() {
            confine.clone_from(&entry.confine);
        }
        Ok(configured)
    }

    /// The defaults, for toolboxes that need no configuration.
    #[must_use]
    pub fn new(plugin_dirs: Vec<PathBuf>, greeter: Greeter) -> Self {
        Self {
            plugin_dirs,
            stage_dirs: Vec::new(),
            content_dir: None,
            drain: Duration::from_secs(10),
            greeter,
            max_failures: 5,
            first_restart: FIRST_RESTART,
            max_restart: MAX_RESTART,
            config: Arc::new(|_| Ok(ToolboxSettings::default())),
            mounted: Arc::new(|_| Ok(ToolboxSettings::default())),
            admit: Arc::new(|_, _| Ok(())),
            programs: Arc::new(Vec::new),
            pythons: Arc::new(Vec::new),
        }
    }
}

/// Adds the identity of the devices and folders of the confinement to a configuration.
fn seen_of(mut configured: ToolboxSettings) -> ToolboxSettings {
    configured.seen = configured
        .toolbox
        .confine
        .as_ref()
        .map(file_identities)
        .unwrap_or_default();
    configured
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("plugin_dirs", &self.plugin_dirs)
            .finish_non_exhaustive()
    }
}

/// Returns the configuration of a toolbox by its id, or why it is wrong.
pub type ConfigSource = Arc<dyn Fn(&str) -> Result<ToolboxSettings, String> + Send + Sync>;

/// Decides whether the toolbox with this manifest, in this file, is loaded.
pub type Admission = Arc<dyn Fn(&Manifest, &Path) -> Result<(), NotAdmitted> + Send + Sync>;

/// Returns the programs that are switched on.
pub type ProgramSource = Arc<dyn Fn() -> Vec<Arc<ProgramConfig>> + Send + Sync>;

/// Returns the Python interpreters that are not switched off.
pub type PythonSource = Arc<dyn Fn() -> Vec<Arc<PythonConfig>> + Send + Sync>;

/// The settings with which one toolbox runs. A toolbox is replaced when any of them changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolboxSettings {
    /// The toolbox's section of the configuration.
    pub toolbox: ToolboxConfig,
    /// Its limits.
    pub limits: Limits,
    /// The memory that its process may use, in MiB.
    pub memory_mb: Option<u64>,
    /// The number of the reading of the configuration from which this comes, for the service. A new number alone
    /// replaces no toolbox.
    pub reading: u64,
    /// The identity of the devices and folders of a confinement that no section asks for; set by the manager.
    pub seen: Vec<(u64, u64)>,
    /// The files that the toolbox reads, each with what tells two states of it apart; set and compared by the manager.
    pub files: BTreeMap<PathBuf, String>,
}

impl ToolboxSettings {
    /// A toolbox with this section and memory limit, which has the times `open` and `close` to open and close in and may give results of
    /// `max_result_bytes`; other limits as by default.
    #[must_use]
    pub fn new(
        toolbox: ToolboxConfig,
        memory_mb: Option<u64>,
        max_result_bytes: usize,
        (open, close): (Duration, Duration),
    ) -> Self {
        let limits = Limits {
            max_result_bytes,
            open,
            close,
            ..Limits::default()
        };
        Self {
            toolbox,
            limits,
            memory_mb,
            ..Self::default()
        }
    }

    /// Whether a toolbox that was opened with `other` need not be replaced, unless files that it reads have changed.
    pub(crate) fn keeps(&self, other: &Self) -> bool {
        let same = Self {
            reading: other.reading,
            files: other.files.clone(),
            ..self.clone()
        };
        same == *other
    }
}

/// How the service takes a loaded copy out of use.
pub trait Drain: Send + Sync + 'static {
    /// Refuses new calls for this copy and waits until no call uses it. After `limit` (at once, if it is zero),
    /// cancels the remaining calls, ends their motion and gives the machine time to come to rest; resolves after that
    /// in any case.
    fn drain(&self, toolbox_id: &str, generation: u64, limit: Duration) -> BoxFuture<'static, ()>;

    /// Reports that this copy was drained and is closed. Until this call, a stop has to reach the copy.
    fn closed(&self, _toolbox_id: &str, _generation: u64) {}
}

/// Makes a snapshot the current one. Called for one snapshot at a time, in order; snapshots that were overtaken are
/// left out. Must not wait for the manager.
pub type Publish = Arc<dyn Fn(Arc<Live>) + Send + Sync>;
