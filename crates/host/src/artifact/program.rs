//! A program that the configuration names: the files that are executed, and whether they may be.
//!
//! Executing a file loads its code, so the files are checked as plugin files are. They are not copied, because an
//! interpreter finds its libraries by its own path. Read [`Executable::find`]. Blocks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::artifact::fingerprint::{Fingerprint, sha256_of};
use executable::check;
use executable::command::{command_of, is_executable, script_of};
use section::ProgramConfig;

/// The files and words that are executed for an entry of the configuration. Two values are equal if a running program
/// that was started from one need not be replaced by the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executable {
    pub(crate) entry: Arc<ProgramConfig>,
    /// The command's path as it is written or found. Links are not resolved: a program that looks at its own name would
    /// behave as another one.
    command: PathBuf,
    /// The command, and the script if the command is an interpreter, each with its fingerprint.
    files: Vec<(PathBuf, Fingerprint)>,
    /// The value that `allow_sha256` pins: the hash of the last of the files, in lower-case hex.
    pub(crate) sha256: String,
}

impl Executable {
    /// Looks for the files of an entry and checks owner and mode of each.
    ///
    /// # Errors
    /// The problem, and what to do about it.
    pub(crate) fn find(entry: &Arc<ProgramConfig>) -> Result<Self, String> {
        let command = found(entry)?;
        let mut files = Vec::new();
        let of_server = match server_of(entry)? {
            Some(server) => [Some(server), server_entry(entry).as_ref().and_then(script)],
            None => [None, None],
        };
        // The last file is the one by which people know the entry.
        let own = [Some(command.clone()), script(entry)];
        for path in of_server.into_iter().chain(own).flatten() {
            let real = check::file(&path).map_err(|error| error.to_string())?;
            let fingerprint = Fingerprint::read(&real);
            files.push((
                path.clone(),
                fingerprint.map_err(|error| format!("{}: {error}", path.display()))?,
            ));
        }
        check_imports(entry)?;
        if !is_executable(&command) {
            let program = command.display();
            return Err(format!("{program} is not executable: chmod +x '{program}'"));
        }
        let sha256 = hash(files.last().map_or(&command, |(path, _)| path))?;
        Ok(Self {
            entry: entry.clone(),
            command,
            files,
            sha256,
        })
    }

    /// Repeats the checks of [`Self::find`] before another process of the program is started: owner and mode of its
    /// files, and its hash if the configuration names the allowed hashes. Blocks.
    ///
    /// # Errors
    /// The problem, and what to do about it.
    pub(crate) fn check_again(&self, allow_sha256: &[String]) -> Result<(), String> {
        for path in self.paths() {
            check::file(path).map_err(|error| error.to_string())?;
        }
        check_imports(&self.entry)?;
        if allow_sha256.is_empty() {
            return Ok(());
        }
        let path = self.shown();
        check::allowed(path, &hash(path)?, allow_sha256).map_err(|error| error.to_string())
    }

    /// The file by which people know the program: its script, or else its command.
    pub(crate) fn shown(&self) -> &Path {
        self.files.last().map_or(&self.command, |(path, _)| path)
    }

    /// The fingerprint of that file.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.files.last().map(|(_, fingerprint)| *fingerprint)
    }

    /// The files of the program.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// The command and its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = std::ffi::OsString> {
        let arguments = self.entry.command.iter().skip(1).chain(&self.entry.args);
        std::iter::once(self.command.clone().into()).chain(arguments.map(Into::into))
    }
}

/// The path of an entry's command.
///
/// # Errors
/// It is in no folder of the service's `PATH`.
fn found(entry: &ProgramConfig) -> Result<PathBuf, String> {
    let word = entry.command.first().map_or("", String::as_str);
    command_of(word, &std::env::var_os("PATH").unwrap_or_default())
}

fn script(entry: &ProgramConfig) -> Option<PathBuf> {
    script_of(entry.command.iter().chain(&entry.args))
}

/// Checks owner and mode of the files and folders from which an interpreter imports.
fn check_imports(entry: &ProgramConfig) -> Result<(), String> {
    let mut imports = entry.imports.iter();
    imports.try_for_each(|path| check::imported(path).map_err(|error| error.to_string()))
}

/// The hash of a file, in lower-case hex.
fn hash(path: &Path) -> Result<String, String> {
    sha256_of(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The path of a mounted server's command; `None` for a server with a URL, and for an entry that mounts no server.
///
/// # Errors
/// The command is in no folder of the service's `PATH`.
pub(crate) fn server_of(entry: &ProgramConfig) -> Result<Option<PathBuf>, String> {
    server_entry(entry).map(|server| found(&server)).transpose()
}

/// A mounted server, as if it were a program.
fn server_entry(entry: &ProgramConfig) -> Option<ProgramConfig> {
    let command = entry.mounted.clone().filter(|command| !command.is_empty())?;
    Some(ProgramConfig {
        command,
        ..ProgramConfig::new(&entry.name)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_script_is_checked_also_behind_an_option_and_is_pinned_by_its_hash_whatever_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = || vec!["0".repeat(64)];
        // The hash of 17 MiB of zeros.
        let of_large = "22427fd5e24f1989afefbda75c8daf74aa02a1d4b2ba47dae755b275d35da5cf".to_owned();
        for (bytes, mode, pins, expected) in [
            (1, 0o644, vec![], None),
            (1, 0o644, wrong(), Some("allow_sha256")),
            (1, 0o666, vec![], Some("others could put code")),
            (17 << 20, 0o644, vec![of_large], None),
            (17 << 20, 0o644, wrong(), Some("allow_sha256")),
        ] {
            let path = folder.path().join(format!("{bytes}-{mode}-{}", pins.concat()));
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let script = path.to_str().unwrap();
            let entry = ProgramConfig {
                command: ["/bin/sh", "-o", "nounset", script].map(str::to_owned).into(),
                ..ProgramConfig::new("p")
            };
            let outcome = Executable::find(&Arc::new(entry)).and_then(|found| found.check_again(&pins));
            match expected {
                None => assert_eq!(outcome, Ok(()), "{script}"),
                Some(expected) => {
                    let why = outcome.unwrap_err();
                    assert!(why.contains(expected) && why.contains(script), "{why}");
                }
            }
        }
    }
}
