//! `calls.jsonl`: every call with its arguments and its outcome, for debugging (`service.log_calls`).
//!
//! Lines are serialized and written on a thread of its own. A call never waits for the disk: when the queue is full,
//! further records are dropped and counted. The calls of the last moment before the service ends may be missing.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde::Serialize;

use crate::api::{self, CallRecord};
use crate::logs::RotatingFile;

/// The file, below the state directory.
const FILE: &str = "calls.jsonl";

/// The file is rotated at this size in bytes, and this many rotated files are kept.
const MAX_BYTES: u64 = 10_000_000;
const BACKUPS: u32 = 1;

/// How many records may be queued. Each has at most 256 KiB, so they take 32 MiB when the disk does not respond.
const WAITING: usize = 128;

/// Passes records to the thread.
pub(super) struct CallLog {
    queue: SyncSender<CallRecord>,
    dropped: AtomicU64,
}

impl CallLog {
    /// Starts the thread, which ends when this is dropped. The thread also opens the file, so a disk that does not
    /// respond delays nothing else.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(state_dir: &Path) -> io::Result<Self> {
        let (queue, records) = sync_channel(WAITING);
        let path = state_dir.join(FILE);
        tracing::warn!(path = %path.display(), "every call is written down with its arguments (service.log_calls)");
        std::thread::Builder::new()
            .name("call-log".to_owned())
            .spawn(move || write(&path, &records))?;
        Ok(Self {
            queue,
            dropped: AtomicU64::new(0),
        })
    }
}

impl api::CallLog for CallLog {
    fn record(&self, call: CallRecord) {
        if self.queue.try_send(call).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(
                dropped,
                "a call was not written to the log of calls: the disk does not keep up"
            );
        }
    }
}

/// Writes until the queue is closed and empty. A record that cannot be written is lost; the next one is tried again.
fn write(path: &Path, records: &Receiver<CallRecord>) {
    let (mut file, mut lost) = (None, 0_u64);
    for call in records {
        if let Err(error) = append(&mut file, path, call) {
            lost += 1;
            tracing::warn!(path = %path.display(), %error, lost, "a call was not written to the log of calls");
        }
    }
}

fn append(file: &mut Option<RotatingFile>, path: &Path, call: CallRecord) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line {
        time: String,
        #[serde(flatten)]
        call: CallRecord,
    }
    let time = jiff::Timestamp::now().to_string();
    let mut line = serde_json::to_vec(&Line { time, call })?;
    line.push(b'\n');
    let file = match file {
        Some(file) => file,
        None => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            file.insert(RotatingFile::private(path, MAX_BYTES, BACKUPS)?)
        }
    };
    file.write_all(&line)
}
