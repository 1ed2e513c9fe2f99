//! A toolbox's code, as far as it is at hand: loaded into this process, or a private copy for processes of their own.
//!
//! Owns the life of such a copy. Read [`Code`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;

use super::load::Library;
use super::settings::Isolation;

/// Where instances of a toolbox are made from.
#[derive(Clone, Debug)]
pub(super) enum Code {
    /// A library in this process, which is never unloaded.
    Loaded(Arc<Library>),
    /// A file that every process of the toolbox loads.
    Staged(Arc<StagedFile>, Arc<Manifest>),
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

/// A staged copy that goes when nobody can start a process from it any more.
#[derive(Debug)]
pub(super) struct StagedFile(PathBuf);

impl StagedFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // The folder goes with the stage in any case.
        _ = std::fs::remove_file(&self.0);
    }
}
