//! The working directory of a program. Read [`WorkFolder`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;

/// A folder that one process makes for itself. The drop of this removes the folder and everything in it.
#[derive(Debug)]
pub(crate) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// The path of a new folder in a private folder of this process. The folder does not exist yet.
    pub(crate) fn below(private: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(private.join(format!("run.{number}")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Files that cannot be removed now, because a process that the program left behind still writes, are removed
        // with the private folder.
        let folder = std::mem::take(&mut self.0);
        let remove = move || fs::remove_dir_all(folder);
        match Handle::try_current() {
            // Threads of the runtime must not wait for a disk.
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => _ = remove(),
        }
    }
}
