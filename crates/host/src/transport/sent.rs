//! A run on its way to, or in, a toolbox. Read [`Sent`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ovos_toolbox_wire::Failure;
use protocol::Order;
use tokio::sync::oneshot;

use crate::transport::tether::Tether;
use engine::Ended;

/// Resolves when a run that was sent has ended. Dropped before that, it gives the run up, which never begins then if it has
/// not begun.
pub(super) struct Sent {
    run: u64,
    ended: oneshot::Receiver<Ended>,
    done: bool,
    tether: Arc<Tether>,
}

impl Sent {
    pub(super) fn new(run: u64, ended: oneshot::Receiver<Ended>, tether: Arc<Tether>) -> Self {
        Self {
            run,
            ended,
            done: false,
            tether,
        }
    }
}

impl Future for Sent {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let polled = Pin::new(&mut self.ended).poll(cx);
        polled.map(|ended| {
            self.done = true;
            // Every way out of the table tells; losing a run would be a bug, and must not hang the call.
            let lost = || Ended::Lost(Failure::new("InternalError", "the run was lost by the service"));
            ended.unwrap_or_else(|_| lost())
        })
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.done {
            let (run, starts) = (self.run, self.tether.lanes.starts());
            self.tether.lanes.control(Order::GiveUp { run, starts });
            self.tether.forget(run);
        }
    }
}
