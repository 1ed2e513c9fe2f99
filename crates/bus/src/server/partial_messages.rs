//! Memory for messages that clients have begun to send and not finished: bounded for all of them together.
//!
//! Beyond the bound the client that holds most is disconnected, so that a client which sends something short is never
//! the one that pays. Read [`PartialMessages::set`].

use std::collections::HashMap;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Partial messages up to this size, in bytes, are not counted: every client has a buffer of that size anyway.
const FREE: usize = 64 << 10;

/// The unfinished messages of all clients.
pub(super) struct PartialMessages {
    limit: usize,
    held: Mutex<HashMap<u64, Holder>>,
}

struct Holder {
    address: SocketAddr,
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
    /// `gone` disconnects the client.
    pub(super) fn set(
        &self,
        (client, address): (u64, SocketAddr),
        bytes: usize,
        held: &mut bool,
        gone: &CancellationToken,
    ) {
        if bytes <= FREE {
            if std::mem::take(held) {
                self.held.lock().remove(&client);
            }
            return;
        }
        *held = true;
        let mut all = self.held.lock();
        // The task of a client that was disconnected here may not have seen it yet.
        if gone.is_cancelled() {
            return;
        }
        let holder = Holder {
            address,
            bytes,
            gone: gone.clone(),
        };
        all.insert(client, holder);
        let mut total: usize = all.values().map(|holder| holder.bytes).sum();
        while total > self.limit
            && let Some(most) = all.iter().max_by_key(|(_, holder)| holder.bytes)
        {
            let most = *most.0;
            if let Some(holder) = all.remove(&most) {
                holder.gone.cancel();
                total -= holder.bytes;
                tracing::warn!(
                    client = %holder.address,
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
            let address = SocketAddr::from(([127, 0, 0, 1], 9));
            unfinished.set((client as u64, address), kib << 10, held, gone);
            let gone = clients.iter().enumerate();
            gone.filter(|(_, (gone, _))| gone.is_cancelled())
                .map(|(at, _)| at)
                .collect::<Vec<usize>>()
        };
        let none: [usize; 0] = [];
        assert_eq!(set(0, 600), none);
        assert_eq!(set(1, 400), none);
        assert_eq!(set(2, 60), none, "a short one is not counted");
        assert_eq!(set(1, 0), none);
        assert_eq!(set(1, 424), none);
        assert_eq!(set(3, 100), [0]);
        // It reads on until it sees that it is disconnected.
        assert_eq!(set(0, 700), [0]);
        assert_eq!(set(3, 200), [0], "a client that is gone still counted");
    }
}
