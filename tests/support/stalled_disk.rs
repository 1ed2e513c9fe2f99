//! A disk that stops responding when it is told to: a library between a program and its C library.
//!
//! The program's calls on files below a folder wait, on any thread. Read [`StalledDisk`].

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::Sandbox;

/// The disk of programs that run with [`variables`](Self::variables).
pub(crate) struct StalledDisk {
    library: PathBuf,
    /// A link to `<function> <folder>` while calls wait.
    stalls: PathBuf,
}

impl StalledDisk {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        let library = sandbox.path("stalled_disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/stalled_disk.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .args([&library, &source])
            .output()
            .expect("a C compiler (cc) is needed for this test: apt install gcc");
        let text = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "cc stalled_disk.c: {text}");
        Self {
            library,
            stalls: sandbox.path("stalls"),
        }
    }

    /// The variables for the program. With one worker thread, a wait on a thread of the runtime delays everything.
    pub(crate) fn variables(&self) -> [(&str, &str); 3] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("STALLED_DISK", self.stalls.to_str().unwrap()),
            ("TOKIO_WORKER_THREADS", "1"),
        ]
    }

    /// From now on this function (`*`: any) waits for files below `folder`.
    pub(crate) fn stall(&self, function: &str, folder: &Path) {
        symlink(format!("{function} {}", folder.display()), &self.stalls).unwrap();
    }

    /// The files that calls wait for, or have waited for.
    pub(crate) fn reached(&self) -> String {
        fs::read_to_string(self.stalls.with_extension("reached")).unwrap_or_default()
    }

    /// Lets the disk respond again.
    pub(crate) fn answer(&self) {
        fs::remove_file(&self.stalls).unwrap();
    }
}
