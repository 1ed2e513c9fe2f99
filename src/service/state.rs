//! What outlives the service: which toolboxes are in emergency stop.
//!
//! One small JSON file, replaced by write and rename. What a file that cannot be read might have named nobody knows, so
//! everything is stopped then: it is reported and set aside, never silently dropped.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, StopRecord};

/// The file, below the state directory.
const FILE: &str = "latches.json";

/// Reads and writes the latches.
#[derive(Debug)]
pub(super) struct LatchFile {
    path: PathBuf,
    /// Which change of the latches the file holds. Held while it is written: of two writers at once, the one with the
    /// older latches could be the last.
    written: Arc<tokio::sync::Mutex<u64>>,
}

/// What the file said when the service started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remembered {
    /// These toolboxes were latched.
    Latched(HashMap<String, StopRecord>),
    /// It cannot be read, for this reason: any toolbox may have been.
    Unknown(String),
}

#[derive(Serialize, Deserialize)]
struct Record {
    stop_id: String,
    reason: String,
}

impl LatchFile {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(FILE),
            written: Arc::default(),
        }
    }

    /// The toolboxes that were latched when the service last ended.
    pub(super) fn read(&self) -> Remembered {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Remembered::Latched(HashMap::new());
            }
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "cannot read which toolboxes are in emergency stop");
                return Remembered::Unknown(format!("{}: {error}", self.path.display()));
            }
        };
        match serde_json::from_str::<BTreeMap<String, Record>>(&text) {
            Ok(records) => {
                let record = |(id, Record { stop_id, reason })| (id, StopRecord { stop_id, reason });
                Remembered::Latched(records.into_iter().map(record).collect())
            }
            Err(error) => {
                let aside = self.path.with_extension("json.broken");
                tracing::error!(
                    path = %self.path.display(), kept_as = %aside.display(), %error,
                    "cannot tell which toolboxes are in emergency stop: check the machine before you use it"
                );
                let why = format!("{}: {error}", self.path.display());
                // It stays in its place too, until what it leads to has been written.
                if let Err(error) = std::fs::copy(&self.path, &aside) {
                    tracing::error!(%error, "cannot set the broken file aside");
                }
                Remembered::Unknown(why)
            }
        }
    }

    /// Brings the file up to date with the latches.
    ///
    /// # Errors
    /// Why it could not be written; logged already.
    ///
    /// # Cancel safety
    /// A write that began goes on.
    pub(super) fn keep(
        &self,
        engine: &Arc<Engine>,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let (path, engine, written) = (self.path.clone(), engine.clone(), self.written.clone());
        async move {
            let mut written = written.lock_owned().await;
            // The number first: latches that are newer than it are only written once more.
            let version = *engine.watch_latches().borrow();
            if *written == version {
                return Ok(());
            }
            let shown = path.display().to_string();
            let latched = engine.latched();
            let wrote = tokio::task::spawn_blocking(move || {
                let wrote = write(&path, &latched);
                if wrote.is_ok() {
                    *written = version;
                }
                wrote
            });
            match wrote.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => {
                    tracing::error!(path = shown, %error, "cannot remember which toolboxes are in emergency stop");
                    Err(format!("{shown}: {error}"))
                }
                Err(error) => {
                    tracing::error!(%error, "bug in the service: the latches were not written");
                    Err(error.to_string())
                }
            }
        }
    }
}

/// Writes the latches; blocks for the disk.
fn write(path: &Path, latched: &BTreeMap<String, StopRecord>) -> std::io::Result<()> {
    let record = |(id, stop): (&String, &StopRecord)| {
        (
            id.clone(),
            Record {
                stop_id: stop.stop_id.clone(),
                reason: stop.reason.clone(),
            },
        )
    };
    let records: BTreeMap<String, Record> = latched.iter().map(record).collect();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let fresh = path.with_extension("json.new");
    let mut file = std::fs::File::create(&fresh)?;
    file.write_all(serde_json::to_string_pretty(&records)?.as_bytes())?;
    // A latch that a power cut forgets would be a robot that moves after it.
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    // The new name is on the disk only when its folder is.
    match path.parent() {
        Some(folder) => std::fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::StopTarget;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_last_word_in_the_file_is_the_newest_latch() {
        let folder = tempfile::tempdir().unwrap();
        let file = Arc::new(LatchFile::new(&folder.path().join("state")));
        assert_eq!(file.read(), Remembered::Latched(HashMap::new()));
        let record = |id: usize| StopRecord {
            stop_id: format!("stop-{id}"),
            reason: "a test".into(),
        };
        let latched = (0..8).map(|id| (format!("arm{id}"), record(id))).collect();
        let engine = Arc::new(Engine::new(1, latched));
        let stops = (0..8).map(|id| {
            let (engine, file) = (engine.clone(), file.clone());
            tokio::spawn(async move {
                let target = StopTarget::Toolboxes(vec![format!("arm{id}")]);
                drop(engine.stop(&target, "a test"));
                file.keep(&engine).await.unwrap();
            })
        });
        for stop in stops.collect::<Vec<_>>() {
            stop.await.unwrap();
        }
        let now = engine.latched().into_iter().collect();
        assert_eq!(file.read(), Remembered::Latched(now));
    }

    #[test]
    fn a_file_that_cannot_be_read_may_have_named_anything_until_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = LatchFile::new(folder.path());
        std::fs::write(&file.path, "{ \"arm\": ").unwrap();
        for _ in 0..2 {
            assert!(matches!(file.read(), Remembered::Unknown(_)));
        }
        assert!(folder.path().join("latches.json.broken").exists());
        write(&file.path, &BTreeMap::new()).unwrap();
        assert_eq!(file.read(), Remembered::Latched(HashMap::new()));
    }
}
