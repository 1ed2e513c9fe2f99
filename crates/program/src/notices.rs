//! Sends the notices of a toolbox's process on its two sockets. Read [`Notices`].

use std::fmt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::Notice;

use crate::frame::Frame;
use crate::lane::{EventFd, LaneSocket};

/// Work that is done a moment later, on the thread of the data lane.
pub type Later = Box<dyn FnOnce() + Send>;

/// Both sockets, and the time of the last message from the service. Sending never blocks.
pub struct Notices {
    pub(crate) data: LaneSocket,
    pub(crate) control: LaneSocket,
    /// Wakes the control thread.
    wake: Arc<EventFd>,
    /// Work for the data thread.
    aside: Mutex<Vec<Later>>,
    began: Instant,
    /// When the service was last heard, in milliseconds since `began`.
    last_contact: AtomicU64,
}

impl Notices {
    /// Sends on these sockets.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new(data: UnixStream, control: UnixStream) -> std::io::Result<Self> {
        let wake = EventFd::new()?;
        Ok(Self {
            data: LaneSocket::new(data, EventFd::new()?),
            control: LaneSocket::new(control, wake.clone()),
            wake,
            aside: Mutex::default(),
            began: Instant::now(),
            last_contact: AtomicU64::new(0),
        })
    }

    /// Sends a line for the log.
    pub fn log(&self, level: u32, target: &str, message: &str) {
        // A line that is lost here would exceed the rate limit of the other side anyway.
        self.chatter(&Notice::Log {
            level,
            target: target.to_owned(),
            message: message.to_owned(),
        });
    }

    /// Sends a notice on the data lane.
    pub(crate) fn data(&self, notice: &Notice) {
        self.data.send(&Frame::of(notice));
    }

    /// As [`Notices::data`], for a notice that may be lost.
    pub(crate) fn chatter(&self, notice: &Notice) {
        self.data.chatter(&Frame::of(notice));
    }

    /// Sends a notice on the control lane.
    pub(crate) fn control(&self, notice: &Notice) {
        self.control.send(&Frame::of(notice));
    }

    /// Queues work that sends on the data lane, for the thread that serves the control lane and must not send there itself.
    pub(crate) fn aside(&self, work: Later) {
        self.aside.lock().push(work);
        self.data.wake();
    }

    /// Does the work that was queued for the data thread. Called on the data thread.
    pub(crate) fn do_aside(&self) {
        let works = std::mem::take(&mut *self.aside.lock());
        for work in works {
            work();
        }
    }

    /// Wakes the control thread.
    pub(crate) fn wake(&self) {
        self.wake.signal();
    }

    /// What wakes the control thread.
    pub(crate) fn woken(&self) -> &EventFd {
        &self.wake
    }

    /// Notes that the service was heard just now.
    pub(crate) fn note_contact(&self) {
        self.last_contact.store(self.now(), Ordering::SeqCst);
    }

    /// How long the service has been silent.
    pub(crate) fn silence(&self) -> Duration {
        let last_contact = self.last_contact.load(Ordering::SeqCst);
        Duration::from_millis(self.now().saturating_sub(last_contact))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices")
            .field("data", &self.data)
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}
