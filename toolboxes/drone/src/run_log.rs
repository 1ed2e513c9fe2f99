//! The run log: a JSONL file of every call, decision and answer, and of what the vehicle did and reported meanwhile.
//!
//! One thread writes it, so that no call waits for the disk. Lines that do not fit the queue are dropped, and the next
//! line says how many. Read [`RunLog`].

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use ovos_toolbox_sdk::prelude::*;
use parking_lot::Mutex;

use crate::clock::Clock;

/// Writes the run log. Clones share one file; without a folder nothing is written.
#[derive(Clone, Default)]
pub(crate) struct RunLog {
    writer: Option<Arc<Writer>>,
}

struct Writer {
    lines: Mutex<Option<SyncSender<String>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    lost: AtomicU64,
    clock: Clock,
}

/// Lines in the queue; a call writes about three.
const QUEUE: usize = 1024;
/// Greatest size of a file; no more is written after that, so that the log cannot fill the disk.
const MAX_BYTES: u64 = 256 << 20;

impl RunLog {
    /// Opens `<folder>/run-<time>-<pid>.jsonl`.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub(crate) fn open(folder: &Path, clock: Clock) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let name = format!(
            "run-{}-{}-{:04x}.jsonl",
            jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ"),
            std::process::id(),
            fastrand::u16(..)
        );
        let mut file = std::fs::OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(folder.join(name))?;
        let (sender, receiver) = sync_channel::<String>(QUEUE);
        let thread = std::thread::Builder::new()
            .name("drone-log".to_string())
            .spawn(move || {
                let mut written = 0;
                for line in receiver {
                    written += line.len() as u64;
                    if written < MAX_BYTES && file.write_all(line.as_bytes()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            writer: Some(Arc::new(Writer {
                lines: Mutex::new(Some(sender)),
                thread: Mutex::new(Some(thread)),
                lost: AtomicU64::new(0),
                clock,
            })),
        })
    }

    /// Whether a log is written.
    pub(crate) fn is_kept(&self) -> bool {
        self.writer.is_some()
    }

    /// Writes `{"ts", "kind", ...fields}`.
    pub(crate) fn write(&self, kind: &str, fields: impl FnOnce() -> Value) {
        let Some(writer) = &self.writer else {
            return;
        };
        let mut line = json!({"ts": writer.clock.unix(), "kind": kind});
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields()) {
            line.extend(fields);
            let lost = writer.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                line.insert("lost_lines".to_string(), lost.into());
            }
        }
        let lines = writer.lines.lock();
        if let Some(Err(TrySendError::Full(_))) =
            lines.as_ref().map(|lines| lines.try_send(format!("{line}\n")))
        {
            writer.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the queued lines and ends the thread.
    pub(crate) fn close(&self) {
        let Some(writer) = &self.writer else {
            return;
        };
        drop(writer.lines.lock().take());
        let thread = writer.thread.lock().take();
        if let Some(thread) = thread {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}
