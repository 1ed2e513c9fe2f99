//! Sends what may wait for a network: a thread for each machine that asked, so that one whose network is dark delays no other.
//! Read [`Replies::send`].

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use parking_lot::Mutex;
use zenoh::Wait as _;
use zenoh::query::Query;

/// How many replies may wait for one machine: as many as it may have calls.
const WAITING: usize = 8192;

/// The threads.
#[derive(Debug, Default)]
pub(super) struct Replies(Mutex<HashMap<String, SyncSender<(Query, String)>>>);

impl Replies {
    /// Sends a reply to `peer` when its turn comes. One for which there is no room is dropped, which the other side sees as a link
    /// that was lost.
    pub(super) fn send(&self, peer: &str, query: &Query, reply: String) {
        let mut threads = self.0.lock();
        let sender = match threads.get(peer) {
            Some(sender) => sender,
            None => {
                let Some(started) = start(peer) else { return };
                threads.entry(peer.to_owned()).or_insert(started)
            }
        };
        if let Err(TrySendError::Full(_)) = sender.try_send((query.clone(), reply)) {
            tracing::warn!(peer, "a reply is dropped: {WAITING} wait for this machine");
        }
    }
}

fn start(peer: &str) -> Option<SyncSender<(Query, String)>> {
    let (sender, receiver) = sync_channel::<(Query, String)>(WAITING);
    let name = format!("to-{peer}");
    let thread = thread::Builder::new().name(name).spawn(move || {
        for (query, reply) in receiver {
            reply_now(&query, reply);
        }
    });
    if let Err(error) = &thread {
        tracing::error!(peer, %error, "a thread that replies cannot be started");
    }
    thread.is_ok().then_some(sender)
}

/// Replies at once. Only for queries whose replies are dropped where the network does not take them.
pub(super) fn reply_now(query: &Query, reply: String) {
    if let Err(error) = query.reply(query.key_expr(), reply).wait() {
        tracing::debug!(%error, "a reply was not sent");
    }
}
