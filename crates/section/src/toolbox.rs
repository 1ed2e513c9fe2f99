//! How a toolbox is run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::confine::Confine;
use super::fields::{hashes, variables};

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
