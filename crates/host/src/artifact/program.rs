//! A program that the configuration names, as it is on the disk: what is executed, and whether it may be.
//!
//! Executing is loading code, so its files are checked as plugin files are. It is not copied: an interpreter finds its
//! libraries by where it is. Read [`Executable::find`]. Blocks.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::artifact::check;
use crate::artifact::fingerprint::{Fingerprint, sha256_of};
use section::ProgramConfig;

/// What is executed for an entry of the configuration. Two are equal if a program that was started as the one need not be
/// replaced for the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executable {
    pub(crate) entry: Arc<ProgramConfig>,
    /// As it is written or found: where its links lead would be another program to one that looks at its own name.
    command: PathBuf,
    /// The command, and its script if that is an interpreter; with what they looked like.
    files: Vec<(PathBuf, Fingerprint)>,
    /// The hash of the last of them, in lower-case hex.
    pub(crate) sha256: String,
}

impl Executable {
    /// Looks for the files of an entry and checks owner and mode of each.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(crate) fn find(entry: &Arc<ProgramConfig>) -> Result<Self, String> {
        let command = command_of(entry)?;
        let script = entry.command.iter().skip(1).chain(&entry.args).map(PathBuf::from);
        // The first file among the arguments of an interpreter is the code.
        let script = script
            .filter(|path| path.is_absolute())
            .find(|path| path.is_file());
        let mut files = Vec::new();
        for path in [Some(command.clone()), script].into_iter().flatten() {
            let real = check::file(&path).map_err(|error| error.to_string())?;
            let fingerprint = Fingerprint::read(&real);
            files.push((
                path.clone(),
                fingerprint.map_err(|error| format!("{}: {error}", path.display()))?,
            ));
        }
        if !is_executable(&command) {
            let shown = command.display();
            return Err(format!("{shown} is not executable: chmod +x '{shown}'"));
        }
        let known_by = files.last().map_or(command.as_path(), |(path, _)| path);
        let sha256 = sha256_of(known_by).map_err(|error| format!("{}: {error}", known_by.display()))?;
        Ok(Self {
            entry: entry.clone(),
            command,
            files,
            sha256,
        })
    }

    /// The file that people know it by: its script, or its command.
    pub(crate) fn shown(&self) -> &Path {
        self.files.last().map_or(&self.command, |(path, _)| path)
    }

    /// What that file looked like.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.files.last().map(|(_, fingerprint)| *fingerprint)
    }

    /// Its files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// What is executed, with its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = std::ffi::OsString> {
        let arguments = self.entry.command.iter().skip(1).chain(&self.entry.args);
        std::iter::once(self.command.clone().into()).chain(arguments.map(Into::into))
    }
}

/// Where the command is: where it is written, or in the first folder of the service's `PATH` that has it. A relative folder
/// is none: the working directory is never searched.
fn command_of(entry: &ProgramConfig) -> Result<PathBuf, String> {
    let word = entry.command.first().map_or("", String::as_str);
    if word.starts_with('/') {
        return Ok(word.into());
    }
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&searched)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(word))
        .find(|path| path.is_file() && is_executable(path));
    found.ok_or_else(|| {
        let searched = searched.display();
        format!(
            "`{word}` is in no folder of the service's PATH ({searched}); write its whole path, or install it"
        )
    })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}
