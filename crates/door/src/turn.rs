//! The order in which requests arrived. A connection's calls begin in this order, and a stop ends what arrived before it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

/// Numbers the requests of all connections of a door, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Order {
    next: Arc<AtomicU64>,
    waiting: Arc<AtomicUsize>,
    /// The requests with smaller numbers do not begin any more, because a stop came after them. The holder of the lock sends: what
    /// is sent to the service has the order of the numbers.
    stopped: Mutex<u64>,
}

/// The requests of one connection that have arrived and not begun.
#[derive(Clone, Debug)]
pub struct Arrivals {
    next: Arc<AtomicU64>,
    /// How many requests of all connections wait.
    count: Arc<AtomicUsize>,
    waiting: Arc<watch::Sender<BTreeSet<u64>>>,
}

/// The place of one request among those of its connection. Take it where the request is read, before anything that waits. The next
/// request may begin when this one has begun, or when its turn is dropped.
#[derive(Debug)]
pub struct Turn {
    number: u64,
    count: Arc<AtomicUsize>,
    waiting: Arc<watch::Sender<BTreeSet<u64>>>,
}

impl Order {
    /// The requests of a new connection.
    pub(crate) fn arrivals(&self) -> Arrivals {
        Arrivals {
            next: Arc::clone(&self.next),
            count: Arc::clone(&self.waiting),
            waiting: Arc::default(),
        }
    }

    /// Sends a call, unless a stop came after its request. `None`: it came.
    pub(crate) fn begin<T>(&self, turn: &Turn, send: impl FnOnce() -> T) -> Option<T> {
        let stopped = self.stopped.lock();
        (turn.number >= *stopped).then(send)
    }

    /// How many requests have arrived and not begun.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Sends a stop: no request that arrived before it begins any more.
    pub(crate) fn stop<T>(&self, send: impl FnOnce() -> T) -> T {
        let mut stopped = self.stopped.lock();
        *stopped = self.next.load(Ordering::Relaxed);
        send()
    }
}

impl Arrivals {
    /// Records the arrival of a request.
    #[must_use]
    pub fn turn(&self) -> Turn {
        let mut number = 0;
        self.waiting.send_modify(|waiting| {
            number = self.next.fetch_add(1, Ordering::Relaxed);
            waiting.insert(number);
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        Turn {
            number,
            count: Arc::clone(&self.count),
            waiting: Arc::clone(&self.waiting),
        }
    }
}

impl Turn {
    /// Waits until all earlier requests of the connection have begun.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn comes(&self) {
        let is_next = |waiting: &BTreeSet<u64>| waiting.first().is_none_or(|first| *first >= self.number);
        // The sender is a field, so it exists as long as `self`.
        _ = self.waiting.subscribe().wait_for(is_next).await;
    }

    /// Lets the next request begin. A call that is made again, after its confirmation, does not wait again.
    pub fn passes(&self) {
        let waited = self
            .waiting
            .send_if_modified(|waiting| waiting.remove(&self.number));
        if waited {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.passes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_begin_in_the_order_of_arrival_whichever_is_ready_first() {
        let arrivals = Order::default().arrivals();
        let turns: Vec<Turn> = (0..20).map(|_| arrivals.turn()).collect();
        let order = Mutex::new(Vec::new());
        // The last is polled first; the third goes away without having begun.
        let begins = turns.into_iter().enumerate().rev().map(|(at, turn)| {
            let order = &order;
            async move {
                if at == 3 {
                    return;
                }
                turn.comes().await;
                order.lock().push(at);
                turn.passes();
            }
        });
        futures_util::future::join_all(begins).await;
        let expected: Vec<usize> = (0..20).filter(|at| *at != 3).collect();
        assert_eq!(*order.lock(), expected);
    }

    #[tokio::test]
    async fn connections_do_not_wait_for_each_other() {
        let order = Order::default();
        let _waits = order.arrivals().turn();
        order.arrivals().turn().comes().await;
    }

    #[test]
    fn a_stop_ends_what_arrived_before_it_and_nothing_else() {
        let order = Order::default();
        let (one, other) = (order.arrivals(), order.arrivals());
        let begun = one.turn();
        assert_eq!(order.begin(&begun, || 1), Some(1));
        begun.passes();
        let before = [one.turn(), other.turn()];
        assert_eq!(order.waiting(), 2);
        assert_eq!(order.stop(|| 2), 2);
        let after = [one.turn(), other.turn()];
        for turn in before.iter().chain([&begun]) {
            assert_eq!(order.begin(turn, || 1), None);
        }
        for turn in &after {
            assert_eq!(order.begin(turn, || 1), Some(1));
        }
    }
}
