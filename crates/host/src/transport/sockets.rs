//! The two sockets between the service and a toolbox's process. Read [`Sockets`].

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ovos_toolbox_wire::{Failure, FailureKind, Start};
use protocol::{MAX_DATA, Order, Raw};
use tokio::sync::watch;

use crate::transport::lanes::Lanes;
use program::frame::Frame;
use program::lane::{EventFd, LaneSocket};

/// The service's ends. A task reads the data lane and sends the bytes that it keeps; the keeper does the same for the control
/// lane.
pub(crate) struct Sockets {
    pub(crate) data: LaneSocket,
    pub(crate) control: LaneSocket,
    /// Wakes the keeper.
    pub(crate) wake: Arc<EventFd>,
    /// Whether the keeper has to watch time limits.
    pub(crate) armed: AtomicBool,
    /// Whether the process has sent its hello.
    pub(crate) greeted: watch::Sender<bool>,
    /// Whether its toolbox is on another machine, as its hello says.
    pub(crate) remote: AtomicBool,
    toolbox_id: String,
    pid: u32,
}

/// Two socketpairs; every end is closed on exec.
pub(crate) struct Pairs {
    pub(crate) data: UnixStream,
    pub(crate) their_data: UnixStream,
    pub(crate) control: UnixStream,
    pub(crate) their_control: UnixStream,
}

impl Pairs {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (data, their_data) = UnixStream::pair()?;
        let (control, their_control) = UnixStream::pair()?;
        Ok(Self {
            data,
            their_data,
            control,
            their_control,
        })
    }
}

impl Sockets {
    pub(crate) fn new(
        data: UnixStream,
        control: UnixStream,
        toolbox_id: &str,
        pid: u32,
    ) -> std::io::Result<Self> {
        data.set_nonblocking(true)?;
        control.set_nonblocking(true)?;
        let wake = EventFd::new()?;
        Ok(Self {
            data: LaneSocket::new(data, EventFd::new()?),
            control: LaneSocket::new(control, wake.clone()),
            wake,
            armed: AtomicBool::new(false),
            greeted: watch::Sender::new(false),
            remote: AtomicBool::new(false),
            toolbox_id: toolbox_id.to_owned(),
            pid,
        })
    }

    /// The frame of an order about `toolbox`, unless it is too long: the process would take a longer frame for an error
    /// and end with all its work.
    pub(crate) fn frame(&self, order: &Order, toolbox: Option<&str>) -> Result<Frame, Failure> {
        let frame = Frame::about(order, toolbox);
        if !frame.is_too_long() {
            return Ok(frame);
        }
        let text = format!(
            "a message to toolbox `{}` is {} bytes, and the limit is {MAX_DATA}; let its actions return less",
            toolbox.unwrap_or(&self.toolbox_id),
            frame.length()
        );
        Err(Failure::new(FailureKind::RuntimeError, text))
    }
}

impl Lanes for Sockets {
    fn start(&self, run: u64, start: &Start, progress: bool) -> Result<(), Failure> {
        let start = Raw::of(start);
        let frame = self.frame(&Order::Start { run, progress, start }, None)?;
        self.data.start(&frame);
        Ok(())
    }

    fn starts(&self) -> u64 {
        self.data.starts()
    }

    fn is_full(&self) -> bool {
        self.data.is_full()
    }

    fn data(&self, order: Order) -> Result<(), Failure> {
        self.data.send(&self.frame(&order, None)?);
        Ok(())
    }

    fn chatter(&self, order: Order) -> bool {
        self.frame(&order, None)
            .is_ok_and(|frame| self.data.chatter(&frame))
    }

    fn control(&self, order: Order) {
        self.control.send(&Frame::of(&order));
    }

    fn close(&self, seq: u64) {
        self.data.send(&Frame::of(&Order::Close { seq }));
        self.wake.signal();
    }

    /// Lets the keeper watch time limits until nothing is under way any more.
    fn wait(&self) {
        if !self.armed.load(Ordering::SeqCst) && !self.armed.swap(true, Ordering::SeqCst) {
            self.wake.signal();
        }
    }

    fn is_kept(&self) -> bool {
        true
    }

    fn pid(&self) -> u32 {
        self.pid
    }
}
