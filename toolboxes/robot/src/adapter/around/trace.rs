//! The commands to the simulated machine with their times, a line of JSON each.
//!
//! Owns the file of the configuration's `trace`. For tests and for looking at a call afterwards. Read [`Trace`].

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

/// The file of commands, where the configuration has a path.
#[derive(Debug, Default)]
pub(super) struct Trace {
    file: Option<File>,
}

impl Trace {
    pub(super) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let open = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self {
            file: path.map(open).transpose()?,
        })
    }

    /// One write a line: several robots may share a file.
    pub(super) fn line(&self, line: impl FnOnce() -> Value) {
        if let Some(mut file) = self.file.as_ref() {
            // A full disk must not stop a robot.
            let _ = file.write_all(format!("{}\n", line()).as_bytes());
        }
    }
}
