//! A plugin file that processes load, and its end.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use crate::artifact::stage;

/// A file that processes of a toolbox load, also the one that brings its hardware to rest when the others have ended.
#[derive(Debug)]
pub struct PluginFile {
    path: PathBuf,
    /// Where it is removed; none for one that is lent.
    removed_on: Option<Handle>,
}

impl PluginFile {
    /// A file of the caller's, who leaves it alone as long as it is used.
    #[must_use]
    pub fn lent(path: PathBuf) -> Self {
        Self {
            path,
            removed_on: None,
        }
    }

    /// A private copy that goes when no process can be started from it any more. Needs a runtime: the last use may end on
    /// a thread that must not wait for a disk.
    pub(crate) fn staged(path: PathBuf) -> Self {
        Self {
            path,
            removed_on: Some(Handle::current()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PluginFile {
    fn drop(&mut self) {
        if let Some(runtime) = &self.removed_on {
            stage::remove(std::mem::take(&mut self.path), runtime);
        }
    }
}
