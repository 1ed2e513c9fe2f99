//! The list of pipelines on disk.
//!
//! Owns the file with the running pipelines, so that after a restart some are started again and the others are
//! reported. The file is replaced atomically by write and rename. Does not decide which pipelines are started. Read
//! [`Store`].

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ovos_toolbox_sdk::prelude::*;
use parking_lot::Mutex;

use crate::config::Restart;
use crate::folder::make_private;

/// A pipeline with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Declared {
    pub(crate) instance_id: String,
    pub(crate) name: String,
    pub(crate) pipeline: String,
    pub(crate) restart: Restart,
    /// Whether it is started with the toolbox.
    pub(crate) autostart: bool,
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct List {
    version: u32,
    /// Whether this was written when the toolbox was closed. If not, its process crashed after it.
    pub(crate) closed: bool,
    /// The number of the next instance.
    #[serde(default)]
    pub(crate) next: u64,
    pub(crate) instances: Vec<Declared>,
}

/// The file.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// Serializes the writers and holds the last written state.
    written: Mutex<Option<List>>,
}

impl Store {
    /// Makes the folder of the file.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn new(state_dir: &Path) -> Result<Self, ToolError> {
        make_private(state_dir)?;
        Ok(Self {
            path: state_dir.join("instances.json"),
            written: Mutex::new(None),
        })
    }

    /// Reads the file. An unreadable file is renamed, not deleted.
    pub(crate) fn read(&self) -> List {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return empty(),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the list of pipelines cannot be read");
                return empty();
            }
        };
        match serde_json::from_slice::<List>(&text) {
            Ok(list) if list.version == VERSION => list,
            other => {
                let why = match other {
                    Ok(list) => format!("it has version {}, expected {VERSION}", list.version),
                    Err(error) => error.to_string(),
                };
                let aside = self.path.with_extension("json.unreadable");
                tracing::warn!(path = %self.path.display(), why, aside = %aside.display(), "the list of pipelines cannot be used and is renamed");
                if let Err(error) = std::fs::rename(&self.path, &aside) {
                    tracing::warn!(%error, "the unusable list of pipelines cannot be renamed");
                }
                empty()
            }
        }
    }

    /// Writes the list from `current`, unless it is unchanged or `None`. Called under the writers' lock, so that an
    /// older list never replaces a newer one. Blocks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(
        &self,
        closed: bool,
        current: impl FnOnce() -> Option<(u64, Vec<Declared>)>,
    ) -> std::io::Result<()> {
        let mut written = self.written.lock();
        let Some((next, instances)) = current() else {
            return Ok(());
        };
        let list = List {
            version: VERSION,
            closed,
            next,
            instances,
        };
        if written.as_ref() == Some(&list) {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&list)?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.as_file().sync_data()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        *written = Some(list);
        Ok(())
    }
}

const VERSION: u32 = 1;

fn empty() -> List {
    List {
        version: VERSION,
        closed: true,
        next: 1,
        instances: Vec::new(),
    }
}
