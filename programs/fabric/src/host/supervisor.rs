//! The thread that ends what a vanished commander moves. Read [`supervise`].
//!
//! It answers the signs of life, too: an answer means that this thread runs, and not only that the network's does. It waits for
//! nothing but its queue.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use zenoh::query::Query;

use engine::{Cause, StopTarget};
use ovos_toolbox_wire::Effect;
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, run_of};
use super::leases::{Lease, OnLeaseLoss};
use crate::clock;
use crate::messages::Beat;

/// How often the leases are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A pause of this thread that means that the machine or this program was frozen.
const FROZEN_MS: u64 = 250;

/// Ends this program if the thread ends unasked: then the processes of the toolboxes halt, because nothing supervises them here.
struct AbortUnlessEnded<'a>(&'a CancellationToken);

impl Drop for AbortUnlessEnded<'_> {
    fn drop(&mut self) {
        if !self.0.is_cancelled() {
            tracing::error!(
                "the supervising thread of this host has ended: the host ends, and its toolboxes halt"
            );
            std::process::abort();
        }
    }
}

/// Supervises until the token is cancelled.
pub(super) fn supervise(desk: &Arc<Desk>, beats: &Receiver<(String, Beat, Query)>, end: &CancellationToken) {
    let _guard = AbortUnlessEnded(end);
    let mut looked = clock::now_ms();
    while !end.is_cancelled() {
        let beat = beats.recv_timeout(LOOK);
        let now = clock::now_ms();
        let paused = now.saturating_sub(looked);
        looked = now;
        // Before any sign of life is taken: those that waited meanwhile are of before.
        let lost = if paused > FROZEN_MS {
            tracing::warn!(
                paused,
                "this host was frozen for a while (`paused`, in ms): it ended all calls from before"
            );
            desk.leases.lock().take_all()
        } else {
            desk.leases.lock().take_expired(now)
        };
        for (toolbox, lease) in lost {
            lose(desk, &toolbox, &lease, now);
        }
        match beat {
            Ok((peer, beat, query)) => desk.beat(&peer, &beat, &query),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Ends what the holder of a lost lease has under way.
fn lose(desk: &Arc<Desk>, toolbox: &str, lease: &Lease, now: u64) {
    let Lease { mount, peer, until } = lease;
    let calls = desk.toolboxes.engine.calls();
    let own = calls
        .iter()
        .filter(|call| call.toolbox_id == toolbox && run_of(&call.call_id, peer, mount).is_some());
    let own: Vec<_> = own.collect();
    // What brings the machine to safety goes on without its commander.
    let moves = own.iter().any(|call| call.effect == Effect::Motion);
    // 0 where the mount has left.
    let since = now.saturating_sub(*until);
    if moves && desk.on_loss == OnLeaseLoss::Stop {
        let target = StopTarget::Toolboxes(vec![toolbox.to_owned()]);
        let reason = format!("its commander `{peer}` left or fell silent during motion");
        let stopped = desk.toolboxes.stop(&target, &reason);
        tracing::warn!(
            toolbox,
            peer,
            since,
            "the lease ran out during motion: emergency stop"
        );
        let task = async move {
            for stopped in stopped.await {
                if let Some(why) = stopped.unreached {
                    tracing::error!(toolbox = stopped.toolbox_id, why, "the stop was not confirmed");
                }
            }
        };
        desk.tracker.spawn_on(task, &desk.runtime);
    } else {
        tracing::info!(toolbox, peer, since, moves, "the lease ran out");
    }
    for call in own {
        tracing::info!(
            call_id = call.call_id,
            toolbox,
            tool = call.tool,
            reason = "its commander left or fell silent",
            "a run is ended"
        );
        call.end(Cause::Cancelled {
            by: format!("its commander `{peer}`, which left or fell silent"),
        });
    }
}
