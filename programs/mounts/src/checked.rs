//! What a mount starts, as the service has checked it. Read [`Checked::of`].
//!
//! The service checks who can write a server's command and its script, before it starts this program. This program starts the
//! server again by itself, as long as both are the same files; else it ends, and the service checks again.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use config::MountConfig;

/// The files that a mount starts: where each really is, and a mark that is another one after each change of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Checked {
    /// As it is written or found: where its links lead would be another program to one that looks at its own name.
    pub(crate) command: PathBuf,
    files: Vec<Option<(PathBuf, Mark)>>,
}

/// Device, inode, and the time of the last change of content, owner or mode.
type Mark = (u64, u64, i64, i64);

impl Checked {
    /// Looks at them. A server with a URL has none. Blocks, but for some calls of `stat` only.
    pub(crate) fn of(mount: &MountConfig) -> Self {
        let Some(word) = &mount.command else {
            return Self::default();
        };
        let command = find(word);
        // As the service looks for it. If it is a file of data that was written since, it is checked once more than needed.
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

/// Where a command is: where it is written, or in the first folder of `PATH` that has it, as the service has found it.
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

/// None if there is no such file now.
fn mark(path: &Path) -> Option<(PathBuf, Mark)> {
    let real = path.canonicalize().ok()?;
    let found = real.metadata().ok()?;
    let mark = (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
    Some((real, mark))
}
