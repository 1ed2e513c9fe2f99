//! Which clients may stay connected when there are more than the bus has places for.
//!
//! The newest always gets in. For it the bus ends the oldest client that has not completed its handshake, then the
//! oldest that has never sent a message, then the one that has been silent for the longest time. Read [`Seats::take`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long the bus waits for the socket of a client that it has ended. It takes microseconds on a machine that is not
/// overloaded.
const END_WAIT: Duration = Duration::from_secs(1);

/// The shortest time between two log lines about ended clients: a flood must not fill the log.
const REMINDER: Duration = Duration::from_secs(5);

/// The clients of a bus, by the order of their arrival.
pub(super) struct Seats {
    limit: usize,
    per_address: usize,
    table: Mutex<Table>,
    /// The number of messages of all clients; gives their last messages an order.
    messages: AtomicU64,
}

#[derive(Default)]
struct Table {
    next: u64,
    taken: BTreeMap<u64, Arc<SeatedClient>>,
    ended: u64,
    warned_at: Option<Instant>,
}

/// What is known of a client.
struct SeatedClient {
    from: IpAddr,
    /// [`HANDSHAKE`], [`SILENT`], or the number of its last message.
    last_message: AtomicU64,
    /// Cancelled to disconnect it.
    gone: CancellationToken,
    /// Cancelled when its socket is closed.
    closed: CancellationToken,
}

/// The handshake is not complete.
const HANDSHAKE: u64 = 0;
/// It has sent no message.
const SILENT: u64 = 1;
/// The first number of a message.
const FIRST: u64 = 2;

/// The place of a client; it becomes free when this is dropped, which has to be after the socket.
pub(super) struct Seat {
    number: u64,
    seated: Arc<SeatedClient>,
    seats: Arc<Seats>,
}

impl Seats {
    pub(super) fn new(limit: usize, per_address: usize) -> Self {
        Self {
            limit: limit.max(2),
            per_address: per_address.max(1),
            table: Mutex::default(),
            messages: AtomicU64::new(FIRST),
        }
    }

    /// Takes a place for a new client; if there is none, ends another client and waits until its socket is closed.
    ///
    /// # Cancel safety
    /// Another client may have been ended.
    pub(super) async fn take(self: &Arc<Self>, from: SocketAddr) -> Seat {
        loop {
            let closed = match self.seat(from.ip().to_canonical()) {
                Ok(seat) => return seat,
                Err(ended) => ended.closed.clone(),
            };
            // If it takes longer, another look ends nothing else: the ended client still has its place.
            _ = timeout(END_WAIT, closed.cancelled()).await;
        }
    }

    /// Ends a client, because the process has no descriptor left for a new one. False if there is none to end.
    ///
    /// # Cancel safety
    /// Another client may have been ended.
    pub(super) async fn make_room(&self) -> bool {
        let ended = self.end(&mut self.table.lock(), None);
        match ended {
            Some(ended) => timeout(END_WAIT, ended.closed.cancelled()).await.is_ok(),
            None => false,
        }
    }

    /// A place, or the client that was ended for it.
    fn seat(self: &Arc<Self>, from: IpAddr) -> Result<Seat, Arc<SeatedClient>> {
        let mut table = self.table.lock();
        // Programs on this machine share an address.
        let bounded = (!from.is_loopback()).then_some(from);
        let same = bounded.map_or(0, |from| {
            table.taken.values().filter(|seated| seated.from == from).count()
        });
        let of = if same >= self.per_address {
            Some(bounded)
        } else if table.taken.len() >= self.limit {
            Some(None)
        } else {
            None
        };
        if let Some(of) = of
            && let Some(ended) = self.end(&mut table, of)
        {
            return Err(ended);
        }
        let number = table.next;
        table.next += 1;
        let seated = Arc::new(SeatedClient {
            from,
            last_message: AtomicU64::new(HANDSHAKE),
            gone: CancellationToken::new(),
            closed: CancellationToken::new(),
        });
        table.taken.insert(number, seated.clone());
        Ok(Seat {
            number,
            seated,
            seats: self.clone(),
        })
    }

    /// Ends the client that is missed least; `of` is an address if only its clients count.
    fn end(&self, table: &mut Table, of: Option<IpAddr>) -> Option<Arc<SeatedClient>> {
        let concerned = table
            .taken
            .values()
            .filter(|seated| of.is_none_or(|of| seated.from == of));
        // The map is in the order of arrival, and the first of equal ones is found.
        let least = concerned
            .map(|seated| (seated.last_message.load(Ordering::Relaxed), seated))
            .min_by_key(|(last_message, _)| *last_message);
        let (last_message, seated) = least.map(|(last_message, seated)| (last_message, seated.clone()))?;
        if !seated.gone.is_cancelled() {
            seated.gone.cancel();
            table.ended += 1;
            if table
                .warned_at
                .is_none_or(|warned_at| warned_at.elapsed() >= REMINDER)
            {
                let what = match last_message {
                    HANDSHAKE => "has not completed its handshake",
                    SILENT => "has never sent a message",
                    _ => "has been silent for the longest time",
                };
                tracing::warn!(
                    client = %seated.from,
                    what,
                    ended = table.ended,
                    places = self.limit,
                    "the embedded bus disconnected a client to make room for a new one (service.embedded_bus_clients)"
                );
                (table.warned_at, table.ended) = (Some(Instant::now()), 0);
            }
        }
        Some(seated)
    }
}

impl Seat {
    /// The order of arrival.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Cancelled when the client has to go.
    pub(super) fn eviction(&self) -> &CancellationToken {
        &self.seated.gone
    }

    /// The handshake is complete.
    pub(super) fn joined(&self) {
        self.seated.last_message.store(SILENT, Ordering::Relaxed);
    }

    /// The client has sent a message.
    pub(super) fn note_message(&self) {
        let number = self.seats.messages.fetch_add(1, Ordering::Relaxed);
        self.seated.last_message.store(number, Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.table.lock().taken.remove(&self.number);
        self.seated.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client does after it has arrived.
    #[derive(Clone, Copy)]
    enum Does {
        Nothing,
        Joins,
        /// Joins, and sends a message.
        Sends,
    }
    use Does::{Joins, Nothing, Sends};

    /// Clients arrive from these addresses and do this; then more arrive. `ended` are those that have to go, in order.
    #[track_caller]
    fn check(clients: &[(&str, Does)], newer: &str, ended: &[usize]) {
        let seats = Arc::new(Seats::new(4, 2));
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut taken: Vec<Option<Seat>> = Vec::new();
        for (from, does) in clients {
            let seat = seats.seat(ip(from)).ok().expect("there is a place");
            match does {
                Nothing => {}
                Joins => seat.joined(),
                Sends => {
                    seat.joined();
                    seat.note_message();
                }
            }
            taken.push(Some(seat));
        }
        let mut order = Vec::new();
        let mut newest = Vec::new();
        while order.len() < ended.len() {
            match seats.seat(ip(newer)) {
                Ok(seat) => {
                    seat.note_message();
                    newest.push(seat);
                }
                Err(gone) => {
                    let index = taken
                        .iter()
                        .position(|seat| seat.as_ref().is_some_and(|seat| Arc::ptr_eq(&seat.seated, &gone)));
                    let index = index.expect("one of the first clients is ended");
                    assert!(gone.gone.is_cancelled());
                    order.push(index);
                    taken[index] = None;
                }
            }
        }
        assert_eq!(order, ended);
    }

    #[test]
    fn the_newest_gets_in_and_the_one_that_is_missed_least_goes() {
        let here = "127.0.0.1";
        check(
            &[(here, Sends), (here, Joins), (here, Nothing), (here, Joins)],
            here,
            &[2, 1, 3, 0],
        );
        // Another machine uses up its own places only.
        let (one, other) = ("192.168.1.5", "192.168.1.6");
        check(&[(here, Joins), (one, Joins), (one, Sends)], one, &[1, 2]);
        check(
            &[(here, Joins), (one, Joins), (one, Sends)],
            "::ffff:192.168.1.5",
            &[],
        );
        check(
            &[(one, Joins), (one, Sends), (here, Joins), (here, Sends)],
            other,
            &[0, 2],
        );
    }

    #[tokio::test]
    async fn a_new_client_waits_until_the_socket_of_another_is_closed() {
        let seats = Arc::new(Seats::new(2, 2));
        let from = "127.0.0.1:5".parse().unwrap();
        let (first, _second) = (seats.take(from).await, seats.take(from).await);
        let gone = first.eviction().clone();
        let taking = tokio::spawn({
            let seats = seats.clone();
            async move { seats.take(from).await.number() }
        });
        gone.cancelled().await;
        assert!(!taking.is_finished());
        drop(first);
        assert_eq!(taking.await.unwrap(), 2);
    }
}
