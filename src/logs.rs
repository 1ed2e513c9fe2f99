//! Log lines: the format and the file every OVOS service writes, stderr beside it, JSON with one flag.
//!
//! [`start`] installs the subscriber once a process; [`Logs`] keeps it alive and changes the level. Writing happens
//! on a thread of its own, so that a full disk or a stuck terminal never holds up a call: past a bound lines are
//! dropped. Nothing here decides what is logged where; that is [`LogConfig`].

mod format;
mod rotate;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use config::{LogConfig, LogLevel, SERVICE_NAME};

pub use format::OvosFormat;
pub use rotate::RotatingFile;

/// What the command line says about logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// One JSON object a line instead of the OVOS format (`--log-json`).
    pub json: bool,
    /// Write the file of [`LogConfig::dir`]. Only the service does; its sub-commands are clients.
    pub file: bool,
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The process has a subscriber already.
    #[error("start logging: {0}")]
    AlreadyStarted(#[from] tracing_subscriber::util::TryInitError),
    /// The subscriber is gone.
    #[error("change the log level: {0}")]
    Reload(#[from] reload::Error),
}

/// Logging of this process. Dropping it writes what is still queued (for at most a second) and ends the thread.
#[derive(Debug)]
pub struct Logs {
    level: reload::Handle<Targets, Registry>,
    file: Option<PathBuf>,
    trouble: Option<String>,
    _writer: WorkerGuard,
}

/// Lines that wait for the writer, about 2 MB of them. Past it the writer is stuck, and losing lines is
/// better than growing or than blocking the thread that logs.
const QUEUED_LINES: usize = 8192;

/// Crates whose lines below WARNING say nothing about this service.
const NOISY: &[&str] = &["mio", "rustls", "tokio_tungstenite", "tungstenite"];

/// Installs the subscriber for the whole process. A log file that cannot be written is told on stderr and left out.
///
/// # Errors
/// When the process has a subscriber already.
pub fn start(config: &LogConfig, options: LogOptions) -> Result<Logs, LogError> {
    let (subscriber, logs) = prepare(config, options);
    subscriber.try_init()?;
    if let Some(trouble) = &logs.trouble {
        tracing::warn!("{trouble}; lines go to stderr only");
    }
    Ok(logs)
}

/// What [`start`] installs, not yet installed.
pub fn prepare(config: &LogConfig, options: LogOptions) -> (impl Subscriber + Send + Sync + use<>, Logs) {
    let path = config
        .dir
        .as_ref()
        .filter(|_| options.file)
        .map(|dir| dir.join(format!("{SERVICE_NAME}.log")));
    let (file, trouble) = match path.as_deref().map(|path| open(path, config)) {
        None => (None, None),
        Some(Ok(file)) => (Some(file), None),
        Some(Err(error)) => {
            let path = path.as_deref().unwrap_or(Path::new("")).display();
            (
                None,
                Some(format!(
                    "write the log file {path}: {error}; set logging.logs.path to a folder that can be written"
                )),
            )
        }
    };
    let file_path = path.filter(|_| file.is_some());
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUED_LINES)
        .lossy(true)
        .thread_name("logs")
        .finish(Outputs {
            stderr: io::stderr(),
            file,
        });

    let (filter, level) = reload::Layer::new(targets(config.level));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(false);
    let lines = if options.json {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(true)
            .boxed()
    } else {
        lines.event_format(OvosFormat::new(SERVICE_NAME)).boxed()
    };
    let logs = Logs {
        level,
        file: file_path,
        trouble,
        _writer: guard,
    };
    (Registry::default().with(filter).with(lines), logs)
}

impl Logs {
    /// Changes which lines are written from now on.
    ///
    /// # Errors
    /// When the subscriber is gone, which only happens while the process ends.
    pub fn set_level(&self, level: LogLevel) -> Result<(), LogError> {
        Ok(self.level.reload(targets(level))?)
    }

    /// The log file, when there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Why there is no log file although the configuration names one.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let noisy = NOISY.iter().map(|name| (*name, level.min(LevelFilter::WARN)));
    Targets::new().with_default(level).with_targets(noisy)
}

fn open(path: &Path, config: &LogConfig) -> io::Result<RotatingFile> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    RotatingFile::open(path, config.max_bytes, config.backup_count)
}

/// Both places a line goes to. One that fails does not keep the line from the other.
struct Outputs {
    stderr: io::Stderr,
    file: Option<RotatingFile>,
}

impl Write for Outputs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let told = self.stderr.write_all(line);
        let kept = self.file.as_mut().map_or(Ok(()), |file| file.write_all(line));
        told.and(kept).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let told = self.stderr.flush();
        let kept = self.file.as_mut().map_or(Ok(()), Write::flush);
        told.and(kept)
    }
}
