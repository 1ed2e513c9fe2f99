//! The process of a toolbox: what its threads share, and the thread of its data lane. Read [`Process`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use protocol::{Notice, Order};

use crate::link::Link;
use crate::message_limits::level;
use crate::notices::Notices;
use crate::server::{Open, Server};
use crate::sockets::kill_self;
use crate::{data_lane, frame};

/// How long the process waits for the service to receive its last notices.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The state that the threads of the process share.
pub(crate) struct Process {
    pub(crate) notices: Arc<Notices>,
    pub(crate) server: Server,
    pub(crate) silence_ms: AtomicU64,
    close_ms: AtomicU64,
    pub(crate) leaving: AtomicBool,
    closed: Arc<CloseState>,
}

/// `in_time` is `None` until the toolbox is closed, and then says whether it closed in time.
#[derive(Default)]
struct CloseState {
    in_time: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Process {
    pub(crate) fn new(notices: Arc<Notices>, open: Open) -> Self {
        Self {
            server: Server::new(Link::new(notices.clone()), open),
            notices,
            silence_ms: AtomicU64::new(500),
            close_ms: AtomicU64::new(0),
            leaving: AtomicBool::new(false),
            closed: Arc::default(),
        }
    }

    /// Logs a warning about this process.
    pub(crate) fn warn(&self, message: &str) {
        self.notices.log(level::WARN, "program", message);
    }

    /// Serves the data socket until it ends.
    pub(crate) fn serve_data(&self) {
        let take = |body: &[u8]| {
            match frame::read(body).map_err(|error| error.to_string())? {
                Order::Open(opening) => {
                    self.silence_ms.store(opening.silence_ms, Ordering::SeqCst);
                    self.close_ms.store(opening.close_ms, Ordering::SeqCst);
                    self.server.open(opening);
                }
                Order::Close { seq } => self.close(seq),
                order => self.server.data(order),
            }
            Ok(())
        };
        let reason = data_lane::serve(&self.notices.data, take, || self.notices.do_aside());
        // The machine is brought to rest whatever the reason: a service that dies resets the connection.
        self.warn(&format!("lost the service: {reason}"));
        self.leave();
    }

    /// Asks the control thread to bring everything to rest and end the process.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.notices.wake();
    }

    /// Closes the toolbox; true if it closed in time, or was never opened.
    pub(crate) fn close_within(&self, limit: Duration) -> bool {
        if self.server.toolbox().is_none() {
            return true;
        }
        let closed = self.closed.clone();
        self.server.close(move |in_time| {
            *closed.in_time.lock() = Some(in_time);
            closed.changed.notify_all();
        });
        let until = Instant::now() + limit;
        let mut in_time = self.closed.in_time.lock();
        while in_time.is_none() && !self.closed.changed.wait_until(&mut in_time, until).timed_out() {}
        in_time.unwrap_or(false)
    }

    fn close(&self, seq: u64) {
        let limit = Duration::from_millis(self.close_ms.load(Ordering::SeqCst));
        let in_time = self.close_within(limit);
        self.notices.data(&Notice::Closed { seq, in_time });
        self.notices.data.flush_within(LAST_WORDS);
        if in_time {
            std::process::exit(0);
        }
        kill_self()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").finish_non_exhaustive()
    }
}
