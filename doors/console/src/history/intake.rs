//! Follows the facts of the service through its control socket and writes them to the database: what happened while nothing followed
//! comes first, from the service's record. Read [`follow`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use client::payload::{ControlRequest, FactLine, FactPosition};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{sleep, timeout};

use super::store::{Bounds, Store, StoreError};

/// How long lines are gathered for one transaction.
const GATHER: Duration = Duration::from_millis(50);

/// How many lines one transaction has at most.
const BATCH: usize = 2000;

/// How many lines may wait to be written. While they do, the service waits with the next ones, and then tells which it left out.
const WAITING: usize = 256;

/// The time between two attempts to reach the service.
const AGAIN: Duration = Duration::from_millis(500);

/// How often the database is looked through for what is too old.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// What the history is made of, and its state.
pub(crate) struct Intake {
    /// The control socket of the service.
    pub(crate) socket: PathBuf,
    /// The database.
    pub(crate) file: PathBuf,
    pub(crate) bounds: Bounds,
    /// Gets each line once it is written, as `{"time_us", "line"}`: the time of a fact on the wall clock, and the line.
    pub(crate) live: broadcast::Sender<Arc<str>>,
    /// Why nothing is written at the moment.
    pub(crate) trouble: Mutex<Option<String>>,
}

/// Lines on their way to the writer.
struct Lines {
    text: String,
    line: FactLine,
}

/// Follows the service until it is dropped, also through its restarts.
///
/// # Cancel safety
/// Safe: what is not written is asked for again.
pub(crate) async fn follow(intake: Arc<Intake>) {
    loop {
        let trouble = match attempt(&intake).await {
            Ok(()) => "the service ended".to_owned(),
            Err(cause) => cause.to_string(),
        };
        tracing::debug!(trouble, "the record of calls is not followed");
        intake.says(Some(trouble));
        sleep(AGAIN).await;
    }
}

/// Why the facts are not followed.
#[derive(Debug, thiserror::Error)]
enum IntakeError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("cannot follow the service through {path}: {cause}")]
    Socket { path: PathBuf, cause: io::Error },
    #[error("the service does not send its record of calls: {0}")]
    Refused(String),
}

async fn attempt(intake: &Arc<Intake>) -> Result<(), IntakeError> {
    let path = intake.file.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let store = Store::open(&path)?;
        let place = store.place()?;
        Ok::<_, StoreError>((store, place))
    });
    let (store, place) = opened.await.map_err(|cause| intake.socket(cause.into()))??;
    let (give, lines) = mpsc::channel(WAITING);
    let own = Arc::clone(intake);
    let writing = tokio::task::spawn_blocking(move || write(&own, store, lines));
    let read = read(intake, place, give).await;
    let written = writing.await.map_err(|cause| intake.socket(cause.into()))?;
    written?;
    read
}

/// Reads the stream to its end.
async fn read(
    intake: &Intake,
    after: Option<FactPosition>,
    give: mpsc::Sender<Lines>,
) -> Result<(), IntakeError> {
    let failed = |cause| intake.socket(cause);
    let mut stream = UnixStream::connect(&intake.socket).await.map_err(failed)?;
    let mut request =
        serde_json::to_vec(&ControlRequest::Facts { after }).map_err(|cause| failed(cause.into()))?;
    request.push(b'\n');
    stream.write_all(&request).await.map_err(failed)?;
    intake.says(None);
    let mut stream = BufReader::new(stream);
    let mut text = String::new();
    loop {
        text.clear();
        if stream.read_line(&mut text).await.map_err(failed)? == 0 {
            return Ok(());
        }
        let Some(line) = FactLine::read(&text) else {
            return Err(IntakeError::Refused(text.trim().to_owned()));
        };
        let text = text.trim_end().to_owned();
        if give.send(Lines { text, line }).await.is_err() {
            // The writer says why.
            return Ok(());
        }
    }
}

/// Writes lines until their channel closes.
fn write(intake: &Intake, mut store: Store, mut lines: mpsc::Receiver<Lines>) -> Result<(), StoreError> {
    let runtime = tokio::runtime::Handle::current();
    let mut trimmed: Option<std::time::Instant> = None;
    let mut run_us = 0;
    loop {
        let gathered = runtime.block_on(async {
            let first = lines.recv().await?;
            let mut gathered = vec![first];
            let more = async {
                while gathered.len() < BATCH
                    && let Some(next) = lines.recv().await
                {
                    gathered.push(next);
                }
            };
            // Without an end in time there is more to come; what has come is written.
            _ = timeout(GATHER, more).await;
            Some(gathered)
        });
        let Some(gathered) = gathered else {
            return Ok(());
        };
        let (texts, facts): (Vec<_>, Vec<_>) =
            gathered.into_iter().map(|lines| (lines.text, lines.line)).unzip();
        store.take(&facts)?;
        for (text, line) in texts.iter().zip(&facts) {
            let at_us = match line {
                FactLine::Start { start } => {
                    run_us = start.time_us;
                    0
                }
                FactLine::Lost { .. } => 0,
                FactLine::Fact(fact) => fact.at_us,
            };
            let time_us = i64::saturating_add_unsigned(run_us, at_us);
            // Without a page that follows there is no receiver.
            _ = intake
                .live
                .send(format!("{{\"time_us\":{time_us},\"line\":{text}}}").into());
        }
        if trimmed.is_none_or(|at| at.elapsed() > TRIM_EVERY) {
            let more = store.trim(now_us(), intake.bounds)?;
            if !more {
                trimmed = Some(std::time::Instant::now());
            }
        }
    }
}

/// The wall clock, in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl Intake {
    fn socket(&self, cause: io::Error) -> IntakeError {
        IntakeError::Socket {
            path: self.socket.clone(),
            cause,
        }
    }

    fn says(&self, trouble: Option<String>) {
        let mut shown = self.trouble.lock();
        if *shown != trouble {
            match &trouble {
                Some(trouble) => tracing::warn!("the history is not being updated: {trouble}"),
                None => tracing::info!("the history follows the service"),
            }
            *shown = trouble;
        }
    }
}
