//! A plugin file that is loaded, and its end.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

/// A file that this process or those of a toolbox load, also the one that brings its hardware to rest when the others have
/// ended.
#[derive(Debug)]
pub struct PluginFile {
    path: PathBuf,
    /// The runtime on which the file is removed; none if it is the caller's.
    removed_on: Option<Handle>,
}

impl PluginFile {
    /// A file of the caller, who must not change it while it is used.
    #[must_use]
    pub fn lent(path: PathBuf) -> Self {
        Self {
            path,
            removed_on: None,
        }
    }

    /// A private copy that goes with its last use, on the runtime: that may end on a thread that must not wait for a disk.
    /// Without a runtime it goes with the stage.
    pub(crate) fn staged(path: PathBuf) -> Self {
        Self {
            path,
            removed_on: Handle::try_current().ok(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PluginFile {
    fn drop(&mut self) {
        if let Some(runtime) = &self.removed_on {
            let copy = std::mem::take(&mut self.path);
            runtime.spawn_blocking(move || fs::remove_file(copy));
        }
    }
}
