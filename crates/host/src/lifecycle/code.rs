//! A toolbox's code: a library loaded into this process, or a private copy or a program for processes of its own.
//!
//! Owns the life of such a copy. Read [`Code`].

use std::sync::Arc;

use ovos_toolbox_wire::Manifest;

use crate::artifact::file::PluginFile;
use crate::artifact::program::Executable;
use crate::ffi::load::Library;
use crate::lifecycle::common::CommonProgram;
use section::Isolation;

/// The code from which copies of a toolbox are opened.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// A library in this process, which is never unloaded, and its file, which a backtrace reads to name functions.
    Loaded {
        library: Arc<Library>,
        _file: Arc<PluginFile>,
    },
    /// One of several toolboxes that share the process of a program.
    Common(Arc<CommonProgram>, Arc<Manifest>),
    /// A file that every process of the toolbox loads, or a program that every such process executes.
    Staged(Arc<PluginFile>, Arc<Manifest>),
}

impl Code {
    pub(crate) fn manifest(&self) -> &Arc<Manifest> {
        match self {
            Self::Loaded { library, .. } => library.manifest(),
            Self::Common(_, manifest) | Self::Staged(_, manifest) => manifest,
        }
    }

    /// The program; `None` for a plugin file.
    pub(crate) fn executable(&self) -> Option<&Executable> {
        match self {
            Self::Loaded { .. } => None,
            Self::Common(program, _) => program.file.executable(),
            Self::Staged(file, _) => file.executable(),
        }
    }

    /// The program whose process the toolbox shares with others, if it does.
    pub(crate) fn common(&self) -> Option<&Arc<CommonProgram>> {
        match self {
            Self::Common(program, _) => Some(program),
            Self::Loaded { .. } | Self::Staged(..) => None,
        }
    }

    /// Where copies of the toolbox run.
    pub(crate) fn isolation(&self) -> Isolation {
        match self {
            Self::Loaded { .. } => Isolation::InProcess,
            Self::Common(..) | Self::Staged(..) => Isolation::Process,
        }
    }
}
