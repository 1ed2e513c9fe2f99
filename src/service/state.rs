//! What outlives the service: which toolboxes are in emergency stop.
//!
//! One small JSON file, replaced by write and rename. A file that cannot be read counts as "everything is latched that it
//! might have named", which is nothing we can know: it is reported and set aside, never silently dropped.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::StopRecord;

/// The file, below the state directory.
const FILE: &str = "latches.json";

/// Reads and writes the latches.
#[derive(Debug)]
pub(super) struct LatchFile {
    path: PathBuf,
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
        }
    }

    /// The toolboxes that were latched when the service last ended.
    pub(super) fn read(&self) -> HashMap<String, StopRecord> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return HashMap::new(),
            Err(error) => {
                tracing::error!(path = %self.path.display(), %error, "cannot read which toolboxes are in emergency stop");
                return HashMap::new();
            }
        };
        match serde_json::from_str::<BTreeMap<String, Record>>(&text) {
            Ok(records) => {
                let record = |(id, Record { stop_id, reason })| (id, StopRecord { stop_id, reason });
                records.into_iter().map(record).collect()
            }
            Err(error) => {
                let aside = self.path.with_extension("json.broken");
                tracing::error!(
                    path = %self.path.display(), kept_as = %aside.display(), %error,
                    "cannot tell which toolboxes are in emergency stop: check the machine before you use it"
                );
                if let Err(error) = std::fs::rename(&self.path, &aside) {
                    tracing::error!(%error, "cannot set the broken file aside");
                }
                HashMap::new()
            }
        }
    }

    /// Writes the latches; blocks for the disk.
    pub(super) fn write(&self, latched: &BTreeMap<String, StopRecord>) -> std::io::Result<()> {
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
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = self.path.with_extension("json.new");
        let mut file = std::fs::File::create(&fresh)?;
        file.write_all(serde_json::to_string_pretty(&records)?.as_bytes())?;
        // A latch that a power cut forgets would be a robot that moves after it.
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)
    }
}
