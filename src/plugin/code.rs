//! A toolbox's code, as far as it is at hand: loaded into this process, or a private copy for processes of their own.
//!
//! Owns the life of such a copy. Read [`Code`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;
use tokio::runtime::Handle;

use super::load::Library;
use super::settings::Isolation;
use super::stage;

/// Where instances of a toolbox are made from.
#[derive(Clone, Debug)]
pub(super) enum Code {
    /// A library in this process, which is never unloaded.
    Loaded(Arc<Library>),
    /// A file that every process of the toolbox loads.
    Staged(Arc<PluginFile>, Arc<Manifest>),
}

impl Code {
    pub(super) fn manifest(&self) -> &Arc<Manifest> {
        match self {
            Self::Loaded(library) => library.manifest(),
            Self::Staged(_, manifest) => manifest,
        }
    }

    /// Where its instances run.
    pub(super) fn isolation(&self) -> Isolation {
        match self {
            Self::Loaded(_) => Isolation::InProcess,
            Self::Staged(..) => Isolation::Process,
        }
    }
}

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
    pub(super) fn staged(path: PathBuf) -> Self {
        Self {
            path,
            removed_on: Some(Handle::current()),
        }
    }

    pub(super) fn path(&self) -> &Path {
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
