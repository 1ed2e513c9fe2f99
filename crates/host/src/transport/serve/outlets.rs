//! What a toolbox's process says, on its two sockets. Read [`Outlets`].

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use protocol::Notice;

use crate::ffi::server::Notices;
use crate::transport::frame::Frame;
use crate::transport::outlet::{Bell, Outlet};

/// The sending halves of both sockets, and when the other end was last heard.
pub(crate) struct Outlets {
    pub(super) data: Outlet,
    pub(super) control: Outlet,
    pub(super) bell: Arc<Bell>,
    began: Instant,
    /// Milliseconds since `began` at which the service was last heard.
    heard: AtomicU64,
}

impl Outlets {
    pub(super) fn new(data: &UnixStream, control: &UnixStream) -> std::io::Result<Self> {
        let bell = Bell::new()?;
        Ok(Self {
            data: Outlet::new(data.try_clone()?, bell.clone()),
            control: Outlet::new(control.try_clone()?, bell.clone()),
            bell,
            began: Instant::now(),
            heard: AtomicU64::new(0),
        })
    }

    /// A line of the log.
    pub(crate) fn log(&self, level: u32, target: &str, message: String) {
        // What is lost here would be lost by the rate limit of the other side.
        self.chatter(&Notice::Log {
            level,
            target: target.to_owned(),
            message,
        });
    }

    /// The service was heard just now.
    pub(super) fn heard(&self) {
        self.heard.store(self.now(), Ordering::SeqCst);
    }

    /// How long the service was not heard.
    pub(super) fn silence(&self) -> Duration {
        let heard = self.heard.load(Ordering::SeqCst);
        Duration::from_millis(self.now().saturating_sub(heard))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Notices for Outlets {
    fn data(&self, notice: &Notice) {
        self.data.send(&Frame::of(notice));
    }

    fn chatter(&self, notice: &Notice) {
        self.data.chatter(&Frame::of(notice));
    }

    fn control(&self, notice: &Notice) {
        self.control.send(&Frame::of(notice));
    }

    fn will_move(&self) {
        // The service ordered it just now.
        self.heard();
    }

    fn moves(&self) {
        // The control thread looks at the service's silence from now on.
        self.bell.ring();
    }
}
