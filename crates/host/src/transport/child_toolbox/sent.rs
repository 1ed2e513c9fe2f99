//! A run on its way to, or in, a toolbox's process. Read [`Sent`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use protocol::Order;

use crate::ffi::runs::Waiting;
use crate::transport::frame::Frame;
use crate::transport::tether::Tether;
use engine::Ended;

/// A run that the child has been sent. Dropped before its end, it never begins if it has not begun.
pub(super) struct Sent {
    pub(super) run: u64,
    pub(super) waiting: Waiting,
    pub(super) tether: Arc<Tether>,
}

impl Future for Sent {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        Pin::new(&mut self.waiting).poll(cx)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.waiting.is_done() {
            let order = Order::GiveUp {
                run: self.run,
                starts: self.tether.data.starts(),
            };
            self.tether.control.send(&Frame::of(&order));
        }
    }
}
