//! `calls.jsonl`: every call with its arguments and its outcome, for debugging (`service.log_calls`).
//!
//! A follower of the facts queues the answers for a thread that writes them. A call never waits for the disk: when the
//! queue is full, further answers are dropped and counted. The calls of the last moment before the service ends may be
//! missing.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde::Serialize;
use serde_json::Value;

use engine::{Answer, Fact, Followed, Follower, RequestOrigin};
use logs::RotatingFile;
use ovos_toolbox_wire::Object;

/// The file, below the state directory.
const FILE: &str = "calls.jsonl";

/// The file is rotated at this size in bytes, and this many rotated files are kept.
const MAX_BYTES: u64 = 10_000_000;
const BACKUPS: u32 = 1;

/// How many answers may be queued. Each has at most 256 KiB with its request, so they take 32 MiB when the disk does
/// not respond.
const WAITING: usize = 128;

/// Passes answers to the thread.
pub(super) struct CallLog {
    queue: SyncSender<Arc<Fact>>,
    dropped: u64,
}

impl CallLog {
    /// Starts the thread, which ends when this is dropped. The thread also opens the file, so a disk that does not
    /// respond delays nothing else.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(state_dir: &Path) -> io::Result<Self> {
        let (queue, answers) = sync_channel(WAITING);
        let path = state_dir.join(FILE);
        tracing::warn!(path = %path.display(), "every call is written down with its arguments (service.log_calls)");
        std::thread::Builder::new()
            .name("call-log".to_owned())
            .spawn(move || write(&path, &answers))?;
        Ok(Self { queue, dropped: 0 })
    }

    /// Queues each answer until no more facts are made.
    pub(super) async fn follow(mut self, mut facts: Follower) {
        while let Some(followed) = facts.next().await {
            match followed {
                Followed::Fact(made) if matches!(*made.fact, Fact::Answered { .. }) => self.queue(made.fact),
                Followed::Fact(_) => {}
                Followed::Lost { from, to } => tracing::warn!(
                    from,
                    to,
                    "the log of calls may lack calls: its writer fell behind and missed these facts"
                ),
            }
        }
    }

    fn queue(&mut self, answered: Arc<Fact>) {
        if self.queue.try_send(answered).is_err() {
            self.dropped += 1;
            tracing::warn!(
                dropped = self.dropped,
                "a call was not written to the log of calls: the disk does not keep up"
            );
        }
    }
}

/// Writes until the queue is closed and empty. An answer that cannot be written is lost; the next one is tried again.
fn write(path: &Path, answers: &Receiver<Arc<Fact>>) {
    let (mut file, mut lost) = (None, 0_u64);
    for fact in answers {
        let Fact::Answered { asked, answer, .. } = &*fact else {
            continue;
        };
        if let Err(error) = append(&mut file, path, &Line::new(asked, answer)) {
            lost += 1;
            tracing::warn!(path = %path.display(), %error, lost, "a call was not written to the log of calls");
        }
    }
}

/// One line of the file.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    /// The topic of the request.
    topic: &'a str,
    /// `context.source` of the request.
    #[serde(skip_serializing_if = "Value::is_null")]
    source: &'a Value,
    /// The session of the request, if the request names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    /// The request's data: name, arguments, call_id.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a Object>,
    /// The tool's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// Milliseconds from the receipt of the request until it was answered.
    elapsed_ms: u64,
    /// Parts that are left out because the line would be longer than 256 KiB with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<&'static str>,
}

impl<'a> Line<'a> {
    fn new(asked: &'a RequestOrigin, answer: &'a Answer) -> Self {
        Self {
            time: jiff::Timestamp::now().to_string(),
            topic: &asked.topic,
            source: &asked.source,
            session_id: asked.session_id.as_deref(),
            request: asked.request.as_deref(),
            result: answer.result.as_ref(),
            error: answer.error.as_deref(),
            elapsed_ms: answer.elapsed_ms,
            left_out: [asked.left_out.as_slice(), &answer.left_out].concat(),
        }
    }
}

fn append(file: &mut Option<RotatingFile>, path: &Path, line: &Line<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(line)?;
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
