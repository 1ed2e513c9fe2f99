//! What the process of a toolbox may access.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::fields::paths;

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
    pub default: Option<DefaultConfinement>,
}

/// The additions of a confinement that no section asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultConfinement {
    /// Folders of the toolbox that are created if they are missing, because access can be given only to existing
    /// ones.
    pub make: Vec<PathBuf>,
    /// The `TMPDIR` of its process.
    pub temp: PathBuf,
}
