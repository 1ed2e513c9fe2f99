//! Logging: in the format and the file of every OVOS service, and also to stderr; as JSON with one flag.
//!
//! [`start`] installs the subscriber of the process; [`Logs`] keeps it alive and changes the level. Lines are written by a thread
//! of their own, so that a full disk or a blocked terminal never delays a call. If its queue is full, lines are dropped.
//! [`LogConfig`] decides what is logged, and where.
//!
//! ```no_run
//! use config::{Config, Overrides, ProcessEnvironment};
//! use ovos_tools_logs::{LogOptions, start};
//!
//! let config = Config::load(&ProcessEnvironment, &Overrides::default(), None)?;
//! let logs = start(&config.logging, LogOptions { json: false, file: false })?;
//! tracing::info!(level = ?*logs.level().borrow(), "a line on stderr");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod format;
mod rotate;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tokio::sync::watch;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use config::{LogConfig, LogLevel, SERVICE_NAME};

pub use format::OvosFormat;
pub use rotate::{RotatingFile, rotated};

/// The options of the command line for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// Whether to write one JSON object for each line instead of the OVOS format (`--log-json`).
    pub json: bool,
    /// Whether to write the file in [`LogConfig::dir`]. Only the service does; the other subcommands are clients.
    pub file: bool,
}

/// Why logging could not be started or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The process already has a subscriber.
    #[error("start logging: {0}")]
    AlreadyStarted(#[from] tracing_subscriber::util::TryInitError),
    /// The subscriber has been dropped.
    #[error("change the log level: {0}")]
    Reload(#[from] reload::Error),
}

/// The logging of this process. Dropping it writes the queued lines (for at most a second) and ends the thread.
#[derive(Debug)]
pub struct Logs {
    filter: reload::Handle<Targets, Registry>,
    level: watch::Sender<LogLevel>,
    trouble: Option<String>,
    _writer: WorkerGuard,
}

/// How many lines may be queued for the writer, about 2 MB of them. If the queue is full, the writer is blocked; then losing lines
/// is better than using more memory or blocking the thread that logs.
const QUEUED_LINES: usize = 8192;

/// Crates whose lines below a level are not relevant to this service.
const NOISY: &[(&str, LevelFilter)] = &[
    ("mio", LevelFilter::WARN),
    ("rustls", LevelFilter::WARN),
    ("tokio_tungstenite", LevelFilter::WARN),
    ("tungstenite", LevelFilter::WARN),
    ("zenoh", LevelFilter::WARN),
    // It warns of what a fabric without gateways does not have.
    ("zenoh::net::routing", LevelFilter::ERROR),
];

/// Installs the subscriber for the whole process. If the log file cannot be written, that is reported on stderr, and
/// lines go to stderr only.
///
/// # Errors
/// [`LogError::AlreadyStarted`]: the process already has a subscriber.
pub fn start(config: &LogConfig, options: LogOptions) -> Result<Logs, LogError> {
    let (subscriber, logs) = prepare(config, options);
    subscriber.try_init()?;
    if let Some(trouble) = &logs.trouble {
        tracing::warn!("{trouble}; logging to stderr only");
    }
    Ok(logs)
}

/// Builds what [`start`] installs, without installing it.
pub fn prepare(config: &LogConfig, options: LogOptions) -> (impl Subscriber + Send + Sync + use<>, Logs) {
    let path = config
        .dir
        .as_ref()
        .filter(|_| options.file)
        .map(|dir| dir.join(format!("{SERVICE_NAME}.log")));
    let open = |path: &Path| {
        open(path, config).map_err(|error| {
            format!(
                "write the log file {}: {error}; set logging.logs.path to a folder that can be written",
                path.display()
            )
        })
    };
    let (file, trouble) = match path.as_deref().map(open).transpose() {
        Ok(file) => (file, None),
        Err(trouble) => (None, Some(trouble)),
    };
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUED_LINES)
        .lossy(true)
        .thread_name("logs")
        .finish(Outputs {
            stderr: io::stderr(),
            file,
        });

    let (layer, filter) = reload::Layer::new(targets(config.level));
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
        lines.event_format(OvosFormat).boxed()
    };
    let logs = Logs {
        filter,
        level: watch::Sender::new(config.level),
        trouble,
        _writer: guard,
    };
    (Registry::default().with(layer).with(lines), logs)
}

impl Logs {
    /// Changes the level of the lines written from now on.
    ///
    /// # Errors
    /// [`LogError::Reload`]: the subscriber has been dropped, which only happens while the process ends.
    pub fn set_level(&self, level: LogLevel) -> Result<(), LogError> {
        self.filter.reload(targets(level))?;
        self.level.send_replace(level);
        Ok(())
    }

    /// The level of the lines written now; it changes with [`Self::set_level`].
    #[must_use]
    pub fn level(&self) -> watch::Receiver<LogLevel> {
        self.level.subscribe()
    }

    /// Why no log file is written although the configuration names a folder.
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
    let noisy = NOISY.iter().map(|(name, most)| (*name, level.min(*most)));
    Targets::new().with_default(level).with_targets(noisy)
}

fn open(path: &Path, config: &LogConfig) -> io::Result<RotatingFile> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    RotatingFile::open(path, config.max_bytes, config.backup_count)
}

/// Both outputs of a line. A failure of one does not affect the other.
struct Outputs {
    stderr: io::Stderr,
    file: Option<RotatingFile>,
}

impl Write for Outputs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let to_stderr = self.stderr.write_all(line);
        let to_file = self.file.as_mut().map_or(Ok(()), |file| file.write_all(line));
        to_stderr.and(to_file).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let to_stderr = self.stderr.flush();
        let to_file = self.file.as_mut().map_or(Ok(()), Write::flush);
        to_stderr.and(to_file)
    }
}
