//! The files that a mount starts, as the service has checked them. Read [`ServerFiles::of`].
//!
//! Before the service starts this program, it checks who can write the server's command and its script. This program may start the
//! server again by itself as long as both files are the same. Otherwise it ends, and the service checks again.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use config::MountConfig;

/// The files that a mount starts: the real path of each, and a mark that differs after each change of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerFiles {
    /// The command as it is written or found. Its links are not resolved, because a program that looks at its own name would
    /// behave differently.
    pub(crate) command: PathBuf,
    files: Vec<Option<(PathBuf, Mark)>>,
}

/// Device, inode, and the time of the last change of content, owner or mode.
type Mark = (u64, u64, i64, i64);

impl ServerFiles {
    /// Reads the marks of the files. A server with a URL has no files. Blocks only for some calls of `stat`.
    pub(crate) fn of(mount: &MountConfig) -> Self {
        let Some(word) = &mount.command else {
            return Self::default();
        };
        let command = find(word);
        // The script is found as the service finds it. It may be a data file that was written since; then the service checks once
        // more than needed.
        let options = mount
            .args
            .iter()
            .take_while(|word| !matches!(word.as_str(), "-m" | "-c"));
        let script = options
            .map(Path::new)
            .find(|path| path.is_absolute() && path.is_file());
        let files = [Some(command.as_path()), script];
        let files = files.into_iter().flatten().map(mark).collect();
        Self { command, files }
    }
}

/// Returns the path of a command: as it is written, or in the first folder of `PATH` that has it, as the service finds it.
fn find(word: &str) -> PathBuf {
    if word.contains('/') {
        return word.into();
    }
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let runs = |path: &PathBuf| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let mut folders = std::env::split_paths(&searched).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| Some(folder.join(word)).filter(runs));
    found.unwrap_or_else(|| word.into())
}

/// Returns the mark of a file; `None` if there is no such file now.
fn mark(path: &Path) -> Option<(PathBuf, Mark)> {
    let real = path.canonicalize().ok()?;
    let found = real.metadata().ok()?;
    let mark = (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
    Some((real, mark))
}
