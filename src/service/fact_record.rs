//! `facts.jsonl`: every step of every call and of the service, kept through restarts.
//!
//! A thread follows the facts and appends them in batches, so that neither a call nor a stop waits for the disk. If the disk
//! is full or does not respond, facts are lost: the record, the log and the status say so. Read [`FactRecord::start`].

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::fact_files;
use client::payload::{FACTS_FORMAT, FactLine, FactsStatus, LostFacts, ServiceStart};
use engine::{Facts, Followed, Follower};
use logs::RotatingFile;

/// How long facts are gathered for one write.
const GATHER: Duration = Duration::from_millis(20);

/// The largest write, in bytes, but for its last fact.
const BATCH: usize = 1 << 20;

/// How long the thread waits after a write that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// After this time a disk that does not respond is mentioned in the status.
const PATIENCE: Duration = Duration::from_secs(1);

/// The record of the facts of this run of the service.
pub(super) struct FactRecord {
    pub(super) facts: Facts,
    /// This run.
    pub(super) start: ServiceStart,
    /// The newest file; `None` if nothing is recorded.
    pub(super) path: Option<PathBuf>,
    writing: Arc<Mutex<WriterReport>>,
    /// The number of the last fact that is recorded, or was given up.
    passed: watch::Receiver<u64>,
}

/// What the thread reports.
#[derive(Default)]
struct WriterReport {
    lost: u64,
    trouble: Option<String>,
    /// Since when it waits for the disk.
    since: Option<Instant>,
}

impl FactRecord {
    /// Gives the facts the numbers after `last`, and starts the thread that records them in this folder, in files of together
    /// `megabytes`; with 0 nothing is recorded. The thread ends when no more facts are made.
    pub(super) fn start(facts: &Facts, state_dir: &Path, megabytes: u64, last: u64) -> Self {
        facts.continue_after(last);
        let follower = facts.follow();
        let time = facts.begun_at().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = ServiceStart {
            id: uuid::Uuid::new_v4().to_string(),
            format: FACTS_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time_us: i64::try_from(time.as_micros()).unwrap_or(i64::MAX),
            first: follower.next_number(),
        };
        let writing = Arc::<Mutex<WriterReport>>::default();
        let (passed, passes) = watch::channel(start.first - 1);
        let path = (megabytes > 0).then(|| fact_files::newest(state_dir));
        if let Some(path) = &path {
            let writer = Writer {
                follower,
                path: path.clone(),
                max_bytes: megabytes * 1_000_000 / u64::from(fact_files::BACKUPS + 1),
                start: start.clone(),
                file: None,
                missing: None,
                writing: writing.clone(),
                passed,
            };
            let thread = std::thread::Builder::new().name("facts".to_owned());
            if let Err(error) = thread.spawn(move || writer.run()) {
                tracing::error!(%error, "the record of calls is not written");
                writing.lock().trouble = Some(error.to_string());
            }
        }
        Self {
            facts: facts.clone(),
            start,
            path,
            writing,
            passed: passes,
        }
    }

    /// What the status says of the record.
    pub(super) fn status(&self) -> FactsStatus {
        let writing = self.writing.lock();
        let waited = writing.since.map(|since| since.elapsed());
        let stalled = waited.filter(|waited| *waited > PATIENCE).map(|waited| {
            let seconds = waited.as_secs();
            format!("the disk has not responded for {seconds} s; calls go on, and entries of their record are lost")
        });
        FactsStatus {
            path: self.path.as_ref().map(|path| path.display().to_string()),
            lost: writing.lost,
            trouble: stalled.or_else(|| writing.trouble.clone()),
        }
    }

    /// Waits up to `limit` until the facts before this number are recorded, or given up.
    pub(super) async fn recorded_before(&self, number: u64, limit: Duration) {
        let mut passed = self.passed.clone();
        // If it takes longer, or the thread has ended, the facts are not in the record.
        _ = timeout(limit, passed.wait_for(|passed| *passed + 1 >= number)).await;
    }

    /// Waits up to `limit` until every fact is recorded, or given up.
    pub(super) async fn flush(&self, limit: Duration) {
        if self.path.is_some() {
            self.recorded_before(self.facts.last() + 1, limit).await;
        }
    }
}

/// The thread.
struct Writer {
    follower: Follower,
    path: PathBuf,
    max_bytes: u64,
    start: ServiceStart,
    file: Option<RotatingFile>,
    /// Facts that could not be recorded; the next write says so.
    missing: Option<LostFacts>,
    writing: Arc<Mutex<WriterReport>>,
    passed: watch::Sender<u64>,
}

impl Writer {
    fn run(mut self) {
        let mut batch = Batch::default();
        // A batch must fit into a file.
        let full = usize::try_from(self.max_bytes / 2).map_or(BATCH, |half| half.min(BATCH));
        while let Some(first) = self.follower.wait() {
            std::thread::sleep(GATHER);
            batch.begin(first.from());
            batch.put(first);
            while batch.lines.len() < full
                && let Some(next) = self.follower.ready()
            {
                batch.put(next);
            }
            self.writing.lock().since = Some(Instant::now());
            let written = self.append(&batch.lines);
            self.writing.lock().since = None;
            self.report(&written, &batch);
            // Those who wait for facts that are given up must not wait longer.
            self.passed.send_replace(batch.facts.to);
            if written.is_err() {
                std::thread::sleep(AGAIN);
            }
        }
    }

    fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        let missing = self.missing.map(|lost| line(&FactLine::Lost { lost }));
        if !self.path.exists() {
            // It was removed by hand.
            self.file = None;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                if let Some(folder) = self.path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                let head = line(&FactLine::Start {
                    start: self.start.clone(),
                });
                let file = RotatingFile::private(&self.path, self.max_bytes, fact_files::BACKUPS, head)?;
                self.file.insert(file)
            }
        };
        let written = file.write_all(&[&missing.unwrap_or_default(), batch].concat());
        match written {
            Ok(()) => self.missing = None,
            // A part of the batch may be in the file: when it is opened again, the torn line is ended.
            Err(_) => self.file = None,
        }
        written
    }

    fn report(&mut self, written: &io::Result<()>, batch: &Batch) {
        let facts = batch.facts;
        let mut writing = self.writing.lock();
        let was_good = writing.trouble.is_none();
        match written {
            Ok(()) => {
                writing.lost += batch.lost;
                writing.trouble = None;
                if !was_good {
                    tracing::warn!(lost = writing.lost, "the record of calls is written again");
                }
            }
            Err(error) => {
                writing.lost += facts.to - facts.from + 1;
                writing.trouble = Some(error.to_string());
                self.missing = Some(LostFacts {
                    from: self.missing.map_or(facts.from, |missing| missing.from),
                    to: facts.to,
                });
                if was_good {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "the record of calls is not written; calls go on");
                }
            }
        }
    }
}

/// What is written at once.
struct Batch {
    lines: Vec<u8>,
    /// The numbers that the lines are about.
    facts: LostFacts,
    /// How many of them the follower lost.
    lost: u64,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            lines: Vec::new(),
            facts: LostFacts { from: 0, to: 0 },
            lost: 0,
        }
    }
}

impl Batch {
    fn begin(&mut self, from: u64) {
        self.lines.clear();
        self.facts.from = from;
        self.lost = 0;
    }

    fn put(&mut self, followed: Followed) {
        match followed {
            Followed::Fact(fact) => {
                let begin = self.lines.len();
                match serde_json::to_writer(&mut self.lines, &fact) {
                    Ok(()) => self.lines.push(b'\n'),
                    Err(error) => {
                        self.lines.truncate(begin);
                        tracing::error!(%error, number = fact.number, "an entry of the record of calls cannot be written");
                    }
                }
                self.facts.to = fact.number;
            }
            Followed::Lost { from, to } => {
                tracing::warn!(
                    from,
                    to,
                    "entries of the record of calls are lost: its disk does not keep up"
                );
                let lost = LostFacts { from, to };
                self.lines.extend(line(&FactLine::Lost { lost }));
                self.lost += to - from + 1;
                self.facts.to = to;
            }
        }
    }
}

/// A line of the record.
pub(super) fn line(line: &FactLine) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}
