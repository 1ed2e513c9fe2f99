//! Sends the notices of a toolbox's process on its two sockets. Read [`Notifier`].

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::Notice;

use crate::ffi::server::Notices;
use crate::transport::frame::Frame;
use crate::transport::lane_socket::{EventFd, LaneSocket};

/// Both sockets, and the time of the last message from the service.
pub(crate) struct Notifier {
    pub(super) data: LaneSocket,
    pub(super) control: LaneSocket,
    /// Wakes the control thread.
    pub(super) wake: Arc<EventFd>,
    /// Work for the data thread.
    aside: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    began: Instant,
    /// When the service was last heard, in milliseconds since `began`.
    heard: AtomicU64,
}

impl Notifier {
    pub(crate) fn new(data: UnixStream, control: UnixStream) -> std::io::Result<Self> {
        let wake = EventFd::new()?;
        Ok(Self {
            data: LaneSocket::new(data, EventFd::new()?),
            control: LaneSocket::new(control, wake.clone()),
            wake,
            aside: Mutex::default(),
            began: Instant::now(),
            heard: AtomicU64::new(0),
        })
    }

    /// Sends a line for the log.
    pub(crate) fn log(&self, level: u32, target: &str, message: String) {
        // A line that is lost here would exceed the rate limit of the other side anyway.
        self.chatter(Notice::Log {
            level,
            target: target.to_owned(),
            message,
        });
    }

    /// Does the work that was queued for the data thread. Called on the data thread.
    pub(super) fn do_aside(&self) {
        let works = std::mem::take(&mut *self.aside.lock());
        for work in works {
            work();
        }
    }

    /// Notes that the service was heard just now.
    pub(super) fn heard(&self) {
        self.heard.store(self.now(), Ordering::SeqCst);
    }

    /// How long the service has been silent.
    pub(super) fn silence(&self) -> Duration {
        let heard = self.heard.load(Ordering::SeqCst);
        Duration::from_millis(self.now().saturating_sub(heard))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Notices for Notifier {
    fn data(&self, notice: Notice) {
        self.data.send(&Frame::of(&notice));
    }

    fn chatter(&self, notice: Notice) {
        self.data.chatter(&Frame::of(&notice));
    }

    fn control(&self, notice: Notice) {
        self.control.send(&Frame::of(&notice));
    }

    fn aside(&self, work: Box<dyn FnOnce() + Send>) {
        self.aside.lock().push(work);
        self.data.wake();
    }

    fn will_move(&self) {
        // The service sent the order just now, so it was heard.
        self.heard();
    }

    fn moves(&self) {
        // The control thread has to check the service's silence from now on.
        self.wake.signal();
    }
}
