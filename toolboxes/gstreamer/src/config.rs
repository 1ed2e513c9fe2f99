//! The configuration of the toolbox.
//!
//! Two stages: [`Section`] is the section `gstreamer` as written, [`Config`] is the checked form that the rest of the
//! toolbox reads. Touches no file and no network. Read [`Section`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovos_toolbox_sdk::prelude::*;

/// The section `gstreamer` of the configuration.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Written")]
pub struct Section {
    /// Folders below which pipelines may read files; `recordings` below `state_dir` when not given, none when empty.
    pub read_roots: Option<Vec<PathBuf>>,
    /// Folders below which pipelines may write files; `recordings` below `state_dir` when not given, none when empty.
    /// A path without a folder is below the first one.
    pub write_roots: Option<Vec<PathBuf>>,
    /// Where pipelines may send to, receive from and listen: `host`, `host:port`, `[ipv6]:port`, `network/prefix`, or
    /// `*` for everywhere. Host names are resolved once. An address to listen on counts as a target, too. This machine alone
    /// when not given.
    pub network_targets: Vec<String>,
    /// Devices pipelines may open: patterns with `*` for the path (`/dev/video*`) or the name in a sound system (`hw:*`).
    pub devices: Vec<String>,
    /// Elements there may be although one of their properties reaches out in a way that is not understood. The folders,
    /// targets and devices hold for them, too.
    pub allow_elements: Vec<String>,
    /// Elements there must not be.
    pub deny_elements: Vec<String>,
    /// How many pipelines may run at once, 1 to 256.
    pub max_instances: usize,
    /// The longest description of a pipeline, in characters, 16 to 1000000.
    pub max_pipeline_length: usize,
    /// Whether stops end the running pipelines: an emergency stop at once, without finishing their files; the user's "stop"
    /// (`ovos.stop`, `mycroft.stop`), of whatever session, with an end of stream first; a cancel of the call that starts
    /// one, that one.
    pub stop_ends_pipelines: bool,
    /// How long a pipeline may take to finish its files when it is stopped, in milliseconds, 0 to 60000.
    pub eos_timeout_ms: u64,
    /// Where the files of people are kept; `check_storage` reports these and what is mounted beside them.
    pub storage_locations: Vec<PathBuf>,
    /// The folder that stands for `/` when devices and mounts are looked up.
    pub sysroot: PathBuf,
    /// Where the list of pipelines is kept; `$XDG_STATE_HOME/ovos-tools/gstreamer` when not given.
    pub state_dir: Option<PathBuf>,
    /// Where `take_snapshot` writes; `snapshots` below `state_dir` when not given.
    pub snapshot_dir: Option<PathBuf>,
    /// Pipelines that are started with the toolbox, by name.
    pub autostart: BTreeMap<String, Autostart>,
}

/// A pipeline that is started with the toolbox.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Autostart {
    /// What gst-launch-1.0 would be given.
    pub pipeline: String,
    /// When it is started again after it has ended.
    #[serde(default)]
    pub restart: Restart,
}

/// When to restart the pipeline: never, after a failure (with growing pauses), or also after it has come to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "models read the docs of variants; the enum's say what they mean"
)]
pub enum Restart {
    #[default]
    Never,
    OnFailure,
    Always,
}

impl Default for Section {
    fn default() -> Self {
        Self {
            read_roots: None,
            write_roots: None,
            network_targets: ["localhost", "127.0.0.0/8", "::1"].map(String::from).to_vec(),
            devices: [
                "/dev/video*",
                "/dev/vdin*",
                "/dev/snd/*",
                "hw:*",
                "plughw:*",
                "default",
            ]
            .map(String::from)
            .to_vec(),
            allow_elements: Vec::new(),
            deny_elements: Vec::new(),
            max_instances: 32,
            max_pipeline_length: 16_384,
            stop_ends_pipelines: false,
            eos_timeout_ms: 3_000,
            storage_locations: ["/mnt/sdcard", "/data"].map(PathBuf::from).to_vec(),
            sysroot: PathBuf::from("/"),
            state_dir: None,
            snapshot_dir: None,
            autostart: BTreeMap::new(),
        }
    }
}

/// An invalid value in the section.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A folder that is not absolute.
    #[error("`{key}` has {path}: expected an absolute path")]
    Relative {
        /// The key.
        key: &'static str,
        /// The value found.
        path: PathBuf,
    },
    /// A number out of range.
    #[error("`{key}` is {found}: expected {expected}")]
    Range {
        /// The key.
        key: &'static str,
        /// The value found.
        found: u64,
        /// The accepted values.
        expected: &'static str,
    },
    /// An invalid network target.
    #[error(
        "`network_targets` has {found:?}: expected a host, host:port, [ipv6]:port, network/prefix such as 192.168.1.0/24, or *"
    )]
    Target {
        /// The value found.
        found: String,
    },
    /// The state folder cannot be determined.
    #[error(
        "nothing says where the list of pipelines is kept: set `state_dir`, or XDG_STATE_HOME or HOME in `env`"
    )]
    NoState,
}

/// The checked section; [`Section`] describes the fields.
#[derive(Clone, Debug)]
pub struct Config {
    /// Absolute folders.
    pub read_roots: Vec<PathBuf>,
    /// Absolute folders.
    pub write_roots: Vec<PathBuf>,
    /// Whether one of the roots is the toolbox's own folder, which it makes.
    pub owns_recordings: bool,
    /// As written; the policy resolves them.
    pub network_targets: Vec<String>,
    /// Patterns.
    pub devices: Vec<String>,
    /// Factory names.
    pub allow_elements: Vec<String>,
    /// Factory names.
    pub deny_elements: Vec<String>,
    /// 1 to 256.
    pub max_instances: usize,
    /// Characters.
    pub max_pipeline_length: usize,
    /// Whether stops end pipelines.
    pub stop_ends_pipelines: bool,
    /// Time limit of the end of stream.
    pub eos_timeout: Duration,
    /// Absolute folders.
    pub storage_locations: Vec<PathBuf>,
    /// Absolute.
    pub sysroot: PathBuf,
    /// Absolute; need not exist yet.
    pub state_dir: PathBuf,
    /// Absolute; need not exist yet.
    pub snapshot_dir: PathBuf,
    /// By name.
    pub autostart: BTreeMap<String, Autostart>,
}

impl Config {
    /// Checks the section and fills in defaults.
    ///
    /// # Errors
    /// A value is invalid; the error names its key.
    pub fn check(written: Section) -> Result<Self, ConfigError> {
        let state_dir = match written.state_dir {
            Some(path) => absolute("state_dir", path)?,
            None => default_state_dir().ok_or(ConfigError::NoState)?,
        };
        let snapshot_dir = match written.snapshot_dir {
            Some(path) => absolute("snapshot_dir", path)?,
            None => state_dir.join("snapshots"),
        };
        let owns_recordings = written.read_roots.is_none() || written.write_roots.is_none();
        let recordings = || vec![state_dir.join("recordings")];
        let max_instances = within("max_instances", written.max_instances, 1, 256, "1 to 256")?;
        let max_pipeline_length = within(
            "max_pipeline_length",
            written.max_pipeline_length,
            16,
            1_000_000,
            "16 to 1000000 characters",
        )?;
        if written.eos_timeout_ms > 60_000 {
            return Err(ConfigError::Range {
                key: "eos_timeout_ms",
                found: written.eos_timeout_ms,
                expected: "0 to 60000 ms",
            });
        }
        Ok(Self {
            read_roots: all_absolute("read_roots", written.read_roots.unwrap_or_else(recordings))?,
            write_roots: all_absolute("write_roots", written.write_roots.unwrap_or_else(recordings))?,
            owns_recordings,
            network_targets: written.network_targets,
            devices: written.devices,
            allow_elements: written.allow_elements,
            deny_elements: written.deny_elements,
            max_instances,
            max_pipeline_length,
            stop_ends_pipelines: written.stop_ends_pipelines,
            eos_timeout: Duration::from_millis(written.eos_timeout_ms),
            storage_locations: all_absolute("storage_locations", written.storage_locations)?,
            sysroot: absolute("sysroot", written.sysroot)?,
            state_dir,
            snapshot_dir,
            autostart: written.autostart,
        })
    }

    /// The toolbox's own folder for what pipelines read and write.
    #[must_use]
    pub fn recordings(&self) -> PathBuf {
        self.state_dir.join("recordings")
    }

    /// The toolbox's own folder for what elements and libraries write by themselves.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.state_dir.join("scratch")
    }

    /// `path` below `sysroot`.
    #[must_use]
    pub fn below_sysroot(&self, path: &str) -> PathBuf {
        self.sysroot.join(path.trim_start_matches('/'))
    }
}

fn default_state_dir() -> Option<PathBuf> {
    let variable = |name| {
        let value = std::env::var_os(name)?;
        Path::new(&value).is_absolute().then(|| PathBuf::from(value))
    };
    let base = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(base.join("ovos-tools/gstreamer"))
}

fn absolute(key: &'static str, path: PathBuf) -> Result<PathBuf, ConfigError> {
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(ConfigError::Relative { key, path })
    }
}

fn all_absolute(key: &'static str, paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, ConfigError> {
    paths.into_iter().map(|path| absolute(key, path)).collect()
}

fn within(
    key: &'static str,
    found: usize,
    least: usize,
    most: usize,
    expected: &'static str,
) -> Result<usize, ConfigError> {
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    let found = u64::try_from(found).unwrap_or(u64::MAX);
    Err(ConfigError::Range { key, found, expected })
}
