//! Memory for messages that clients have begun to send and not finished: bounded for all of them together.
//!
//! Beyond the bound the client that holds most is disconnected, so that a client which sends something short is never
//! the one that pays. Read [`PartialMessages::set`].

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Messages up to this many bytes are not counted: that many of each client are the buffer that every client has.
const FREE: usize = 64 << 10;

/// The unfinished messages of all clients.
pub(super) struct PartialMessages {
    limit: usize,
    held: Mutex<HashMap<u64, Holder>>,
}

struct Holder {
    bytes: usize,
    gone: CancellationToken,
}

impl PartialMessages {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Mutex::default(),
        }
    }

    /// A client has this many bytes of an unfinished message now; `held` remembers between the calls whether it counts.
    pub(super) fn set(&self, client: u64, bytes: usize, held: &mut bool, gone: &CancellationToken) {
        if bytes <= FREE {
            if std::mem::take(held) {
                self.held.lock().remove(&client);
            }
            return;
        }
        *held = true;
        let mut all = self.held.lock();
        let gone = gone.clone();
        all.insert(client, Holder { bytes, gone });
        let mut total: usize = all.values().map(|holder| holder.bytes).sum();
        while total > self.limit
            && let Some(most) = all.iter().max_by_key(|(_, holder)| holder.bytes)
        {
            let most = *most.0;
            if let Some(holder) = all.remove(&most) {
                holder.gone.cancel();
                total -= holder.bytes;
                tracing::warn!(
                    bytes = holder.bytes,
                    limit = self.limit,
                    "disconnected the client with the largest partial message: all partial messages together exceed the limit"
                );
            }
        }
    }

    /// A client has left.
    pub(super) fn forget(&self, client: u64) {
        self.held.lock().remove(&client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_holds_most_pays() {
        let unfinished = PartialMessages::new(1 << 20);
        let mut clients: Vec<_> = (0..4).map(|_| (CancellationToken::new(), false)).collect();
        let mut set = |client: usize, kib: usize| {
            let (gone, held) = &mut clients[client];
            unfinished.set(client as u64, kib << 10, held, gone);
            let mut gone = clients.iter().map(|(gone, _)| gone.is_cancelled());
            gone.position(|gone| gone)
        };
        assert_eq!(set(0, 600), None);
        assert_eq!(set(1, 400), None);
        assert_eq!(set(2, 60), None, "a short one is not counted");
        assert_eq!(set(1, 0), None);
        assert_eq!(set(1, 424), None);
        assert_eq!(set(3, 100), Some(0));
    }
}
