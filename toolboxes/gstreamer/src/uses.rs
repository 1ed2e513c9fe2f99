//! The resources of a pipeline.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The resources of an allowed element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Uses {
    /// Devices that only one pipeline can use, by their canonical names.
    pub(crate) devices: BTreeSet<String>,
    /// Files, or patterns of files, that it writes.
    pub(crate) writes: BTreeSet<PathBuf>,
}
