//! The working directory of a program. Read [`WorkFolder`].

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Handle;

/// A folder that one process makes for itself, and that is removed with everything in it when this is dropped.
#[derive(Debug)]
pub(crate) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// One that does not exist yet, in a private folder of this process.
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
        // What cannot be removed now (a process that the program left behind still writes) goes with the private folder.
        let folder = std::mem::take(&mut self.0);
        let remove = move || fs::remove_dir_all(folder);
        match Handle::try_current() {
            // Threads of the runtime must not wait for a disk.
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => _ = remove(),
        }
    }
}
