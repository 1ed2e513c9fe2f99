//! The files that a mount starts, as the service has checked them. Read [`ServerFiles::of`].
//!
//! Before the service starts this program, it checks who can write the server's command and its script. This program may start the
//! server again by itself as long as both files are the same. Otherwise it ends, and the service checks again.

use std::iter;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use config::MountConfig;
use executable::command::{command_of, script_of};

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
        let searched = std::env::var_os("PATH").unwrap_or_default();
        let command = command_of(word, &searched).unwrap_or_else(|_| word.into());
        // It may be a data file that was written since; then the service checks once more than needed.
        let script = script_of(iter::once(word).chain(&mount.args));
        let files = [Some(command.as_path()), script.as_deref()];
        let files = files.into_iter().flatten().map(mark).collect();
        Self { command, files }
    }
}

/// Returns the mark of a file; `None` if there is no such file now.
fn mark(path: &Path) -> Option<(PathBuf, Mark)> {
    let real = path.canonicalize().ok()?;
    let found = real.metadata().ok()?;
    let mark = (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
    Some((real, mark))
}
