//! A toolbox's code, a private copy of a file or a program, and where it came from. Read [`Source`].

use std::path::PathBuf;
use std::sync::Arc;

use ovos_toolbox_wire::Manifest;

use crate::artifact::file::PluginFile;
use crate::artifact::fingerprint::Fingerprint;
use crate::artifact::program::Executable;
use crate::lifecycle::common_program::CommonProgram;
use section::ProgramConfig;

/// The code of a toolbox and the file that it came from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) code: Code,
    pub(crate) path: PathBuf,
    pub(crate) sha256: String,
    pub(crate) fingerprint: Fingerprint,
}

impl Source {
    /// The toolbox's id.
    pub(crate) fn id(&self) -> &str {
        &self.code.manifest().id
    }

    /// The program's entry in the configuration; `None` for a plugin file.
    pub(crate) fn entry(&self) -> Option<&Arc<ProgramConfig>> {
        self.code.executable().map(|executable| &executable.entry)
    }

    /// The name of the program; `None` for a plugin file.
    pub(crate) fn program(&self) -> Option<&str> {
        self.entry().map(|entry| entry.name.as_str())
    }
}

/// The code from which copies of a toolbox are opened.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    /// One of several toolboxes that share the process of a program.
    Common(Arc<CommonProgram>, Arc<Manifest>),
    /// A file that every process of the toolbox loads, or a program that every such process executes.
    Staged(Arc<PluginFile>, Arc<Manifest>),
}

impl Code {
    pub(crate) fn manifest(&self) -> &Arc<Manifest> {
        match self {
            Self::Common(_, manifest) | Self::Staged(_, manifest) => manifest,
        }
    }

    /// The program; `None` for a plugin file.
    pub(crate) fn executable(&self) -> Option<&Executable> {
        match self {
            Self::Common(program, _) => program.file.executable(),
            Self::Staged(file, _) => file.executable(),
        }
    }

    /// The program whose process the toolbox shares with others, if it does.
    pub(crate) fn common(&self) -> Option<&Arc<CommonProgram>> {
        match self {
            Self::Common(program, _) => Some(program),
            Self::Staged(..) => None,
        }
    }
}
