//! The list of pipelines on disk.
//!
//! Owns the file that says which pipelines ran, so that after a restart those come back that should and the others are
//! reported. Written as a whole by write and rename. Never decides who comes back. Read [`Store`].

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ovos_toolbox_sdk::prelude::*;

use crate::config::Restart;

/// A pipeline, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Declared {
    pub(crate) instance_id: String,
    pub(crate) name: String,
    pub(crate) pipeline: String,
    pub(crate) restart: Restart,
    /// Comes back whenever the toolbox is opened.
    pub(crate) autostart: bool,
    /// How often the process died while it was on trial, without a minute of peace in between.
    #[serde(default)]
    pub(crate) crashes: u32,
    /// Whether it was started only just now: should the process die, this is what is suspected.
    #[serde(default)]
    pub(crate) on_trial: bool,
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct List {
    version: u32,
    /// Whether the toolbox was closed after it wrote this; otherwise its process died.
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
    /// One writer at a time, and the last state wins.
    written: Mutex<Option<List>>,
}

impl Store {
    /// Names the file, and makes its folder.
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

    /// What was written last. A file that cannot be read is put aside, not deleted.
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
                    Ok(list) => format!("it is of version {}", list.version),
                    Err(error) => error.to_string(),
                };
                let aside = self.path.with_extension("json.unreadable");
                tracing::warn!(path = %self.path.display(), why, aside = %aside.display(), "the list of pipelines is put aside");
                if let Err(error) = std::fs::rename(&self.path, &aside) {
                    tracing::warn!(%error, "it cannot be put aside");
                }
                empty()
            }
        }
    }

    /// Writes the list that `current` gives, unless it says the same as before or there is none. Asked while nobody else
    /// writes, so that an older list never comes after a newer one. Blocks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(
        &self,
        closed: bool,
        current: impl FnOnce() -> Option<(u64, Vec<Declared>)>,
    ) -> std::io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Makes a folder that nobody else can look into: descriptions may hold passphrases.
pub(crate) fn make_private(path: &Path) -> Result<(), ToolError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| ToolError::msg(format!("make the folder {}: {error}", path.display())))
}
