//! The file in which the schedules survive a restart.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use config::write_atomically;

use crate::table::Table;

/// The name of the file in the state folder.
const FILE: &str = "schedules.json";

/// The file. Every method blocks on the disk.
pub(crate) struct Store(PathBuf);

/// Why there are no schedules. None is taken for deleted: the file stays as it is.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {cause}; fix the file or move it away, then start the door again", path.display())]
pub(crate) struct Unreadable {
    path: PathBuf,
    cause: io::Error,
}

impl Store {
    pub(crate) fn in_folder(folder: &std::path::Path) -> Self {
        Self(folder.join(FILE))
    }

    /// The schedules that were kept.
    ///
    /// # Errors
    /// There is a file that cannot be read.
    pub(crate) fn read(&self) -> Result<Table, Unreadable> {
        let read = match fs::read(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Table::default()),
            read => read,
        };
        let table = read.and_then(|text| serde_json::from_slice(&text).map_err(io::Error::other));
        table.map_err(|cause| Unreadable {
            path: self.0.clone(),
            cause,
        })
    }

    /// Keeps the schedules. They are on the disk when this returns.
    ///
    /// # Errors
    /// The file is as it was before.
    pub(crate) fn write(&self, table: &Table) -> io::Result<()> {
        let text = serde_json::to_vec(table)?;
        write_atomically(&self.0, &text, None)
    }
}
