//! The part of a toolbox's section that its host obeys: whether the toolbox is loaded, and what its process may access.
//!
//! Owns the types and what each of their fields accepts. `config` reads them from files, of which `host` knows nothing.
//! Read [`ToolboxConfig`].
//!
//! ```
//! use ovos_tools_section::ProgramConfig;
//!
//! let entry = ProgramConfig {
//!     command: vec!["/opt/arm/arm.py".to_owned()],
//!     toolboxes: vec!["arm".to_owned(), "arm-*".to_owned()],
//!     ..ProgramConfig::new("arms")
//! };
//! assert!(entry.may_offer("arm-left") && !entry.may_offer("drone"));
//! ```

pub mod fields;
mod program;
mod python;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use fields::{hashes, paths, variables};
pub use program::ProgramConfig;
pub use python::{PythonConfig, Switch};

/// How a toolbox is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolboxConfig {
    /// Whether it is loaded.
    pub enabled: bool,
    /// If not empty, only plugin files with one of these hashes are loaded. Lower-case hex.
    #[serde(deserialize_with = "hashes")]
    pub allow_sha256: Vec<String>,
    /// Variables added to the environment of its process.
    #[serde(deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    /// `confine`: what its process may access. Without it: everything the service may access; for `gstreamer` what its
    /// own keys allow. `false`: everything.
    #[serde(skip)]
    pub confine: Option<Confine>,
    /// All other keys: the toolbox's own configuration, checked by the schema of its manifest.
    #[serde(skip)]
    pub own: Map<String, Value>,
}

impl Default for ToolboxConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_sha256: Vec::new(),
            env: BTreeMap::new(),
            confine: None,
            own: Map::new(),
        }
    }
}

/// What a toolbox's process may access, in addition to what every program needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confine {
    /// Files and folders it may read, write, create and remove.
    #[serde(deserialize_with = "paths")]
    pub paths_rw: Vec<PathBuf>,
    /// Files and folders it may read; programs in them it may run.
    #[serde(deserialize_with = "paths")]
    pub paths_ro: Vec<PathBuf>,
    /// Whether it may open sockets: to other machines, and to programs on this one.
    pub network: bool,
    /// Device files, or folders of them, that it may read, write and control. In the name of a file `*` matches any
    /// characters.
    #[serde(deserialize_with = "paths")]
    pub devices: Vec<PathBuf>,
    /// Present if the section has no `confine`: a machine that cannot confine then runs the toolbox unconfined.
    #[serde(skip)]
    pub usual: Option<Usual>,
}

/// The additions of a confinement that no section asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usual {
    /// Folders of the toolbox that are created if they are missing, because access can be given only to existing
    /// ones.
    pub make: Vec<PathBuf>,
    /// The `TMPDIR` of its process.
    pub temp: PathBuf,
}
