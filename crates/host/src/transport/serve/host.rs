//! The state that the threads of a toolbox's process share, and the thread of its data socket. Read [`Host`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ovos_toolbox_abi::level;
use ovos_toolbox_wire::{Failure, FailureKind};
use parking_lot::Mutex;
use protocol::{Functions, Notice, Opening, Order};
use rustix::process::Signal;

use super::notifier::Notifier;
use crate::contract::services::Limits;
use crate::ffi::load::Library;
use crate::ffi::plugin::Open;
use crate::ffi::server::{Notices, Server};
use crate::ffi::wake_lock::WakeLock;
use crate::transport::{data_lane, frame};

/// How long the process waits for the service to receive its last notices.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The state that the threads of the process share.
pub(super) struct Host {
    pub(super) file: PathBuf,
    pub(super) notifier: Arc<Notifier>,
    pub(super) server: Server,
    pub(super) silence_ms: AtomicU64,
    close_ms: AtomicU64,
    pub(super) config: Mutex<String>,
    pub(super) leaving: AtomicBool,
    /// Whether the toolbox has been closed, or did not open.
    closed: Arc<WakeLock<bool>>,
    /// Why the process could not be confined; nothing is loaded then.
    unconfined: Option<String>,
}

impl Host {
    /// `unconfined` is the reason why the process could not be confined, if there is one.
    pub(super) fn new(file: &Path, notifier: Arc<Notifier>, unconfined: Option<String>) -> Self {
        Self {
            file: file.to_owned(),
            server: Server::new(notifier.clone()),
            notifier,
            silence_ms: AtomicU64::new(500),
            close_ms: AtomicU64::new(0),
            config: Mutex::default(),
            leaving: AtomicBool::new(false),
            closed: Arc::default(),
            unconfined,
        }
    }

    /// Logs a warning about this process.
    pub(super) fn warn(&self, message: &str) {
        self.notifier.log(level::WARN, "toolbox_host", message.to_owned());
    }

    /// Serves the data socket until it ends.
    pub(super) fn serve_data(&self) {
        let take = |body: &[u8]| {
            match frame::read(body).map_err(|error| error.to_string())? {
                Order::Open(opening) => self.open(opening),
                Order::Close { seq } => self.close(seq),
                order => self.server.data(order),
            }
            Ok(())
        };
        let reason = data_lane::serve(&self.notifier.data, take, || self.notifier.do_aside());
        // Whatever the reason (a service that dies resets the connection), the machine is brought to rest first.
        self.warn(&format!("the service is gone: {reason}"));
        self.leave();
    }

    /// Asks the control thread to bring everything to rest and end the process.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.notifier.wake.signal();
    }

    fn open(&self, opening: Opening) {
        let seq = opening.seq;
        let notifier = self.notifier.clone();
        let opened = move |said: Result<Functions, Failure>| {
            let answer = said.into();
            notifier.data(Notice::Opened { seq, answer });
        };
        if let Err(failure) = self.try_open(opening, opened.clone()) {
            opened(Err(failure));
        }
    }

    fn try_open(
        &self,
        opening: Opening,
        opened: impl FnOnce(Result<Functions, Failure>) + Send + 'static,
    ) -> Result<(), Failure> {
        let Opening {
            seq: _,
            generation,
            config,
            stop_epoch,
            max_result_bytes,
            max_queued,
            max_messages,
            max_requests,
            open_ms,
            close_ms,
            silence_ms,
        } = opening;
        if let Some(reason) = &self.unconfined {
            return Err(Failure::new(FailureKind::PermissionError, reason));
        }
        self.silence_ms.store(silence_ms, Ordering::SeqCst);
        self.close_ms.store(close_ms, Ordering::SeqCst);
        let config = config.into_text();
        self.config.lock().clone_from(&config);
        let library = Library::load(&self.file, &self.file);
        let library = library.map_err(|e| Failure::new(FailureKind::ToolboxError, e.to_string()))?;
        let limits = Limits {
            max_result_bytes,
            max_queued,
            max_messages,
            max_requests,
            open: Duration::from_millis(open_ms),
            close: Duration::from_millis(close_ms),
            // The service enforces its own, shorter limit for a halt.
            halt: Duration::from_secs(10),
            silence: Duration::from_millis(silence_ms),
        };
        let open = Open {
            generation,
            config,
            stop_epoch,
            limits,
        };
        let functions = library.functions();
        let opened = Box::new(move |said: Result<(), Failure>| opened(said.map(|()| functions)));
        let closed = self.closed.clone();
        self.server.open(Arc::new(library), open, opened, move || {
            let mut closed = closed.lock();
            *closed = true;
            closed.wake();
        })
    }

    /// Closes the toolbox; true if it closed in time, or was never opened.
    pub(super) fn close_within(&self, limit: Duration) -> bool {
        if !self.server.close() {
            return true;
        }
        let until = Instant::now() + limit;
        let mut closed = self.closed.lock();
        while !*closed && Instant::now() < until {
            closed = closed.wait_for(until.saturating_duration_since(Instant::now()));
        }
        *closed
    }

    fn close(&self, seq: u64) {
        let limit = Duration::from_millis(self.close_ms.load(Ordering::SeqCst));
        let in_time = self.close_within(limit);
        self.notifier.data(Notice::Closed { seq, in_time });
        self.notifier.data.flush_within(LAST_WORDS);
        if in_time {
            std::process::exit(0);
        }
        // A function of the toolbox is still running, and destructors would run beside it.
        kill_self()
    }
}

/// Not `exit`: the toolbox's threads may still run, and would race with its destructors.
pub(super) fn kill_self() -> ! {
    _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    std::process::abort()
}
