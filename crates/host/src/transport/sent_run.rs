//! A run whose start was sent to a toolbox. Read [`SentRun`].

use std::sync::Arc;

use ovos_toolbox_wire::{Failure, FailureKind};
use protocol::Order;
use tokio::sync::oneshot;

use crate::transport::peer::Peer;
use engine::RunResult;

/// A run that was sent. If this is dropped before the run's end, the run is given up: if it has not begun, it never
/// begins.
pub(super) struct SentRun {
    run: u64,
    peer: Arc<Peer>,
    done: bool,
}

impl SentRun {
    pub(super) fn new(run: u64, peer: Arc<Peer>) -> Self {
        Self {
            run,
            peer,
            done: false,
        }
    }

    /// Waits for the end of the run.
    pub(super) async fn end(mut self, receiver: oneshot::Receiver<RunResult>) -> RunResult {
        let ended = receiver.await;
        self.done = true;
        // Every removal from the table reports the end. A lost run would be a bug, and must not make the call hang.
        let lost = |_| {
            RunResult::Lost(Failure::new(
                FailureKind::InternalError,
                "the run was lost by the service",
            ))
        };
        ended.unwrap_or_else(lost)
    }
}

impl Drop for SentRun {
    fn drop(&mut self) {
        if !self.done {
            let (run, starts) = (self.run, self.peer.lanes.starts());
            self.peer.lanes.control(Order::GiveUp { run, starts });
            self.peer.forget(run);
        }
    }
}
