//! Messages that wait to be taken: bounded in number and bytes, the newest wins.
//!
//! What carries messages never waits for what reads them, and what nothing reads is not decoded. Read [`Inbox`].

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::error::GraphError;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Messages.
    pub messages: usize,
    /// Their bytes. A message alone may be larger up to what the carrier accepts.
    pub bytes: usize,
}

impl Default for Bounds {
    /// 10 messages, 16 MiB.
    fn default() -> Self {
        Self {
            messages: 10,
            bytes: 16 << 20,
        }
    }
}

/// Makes the value of a message when it is taken.
pub type Unread = Box<dyn FnOnce() -> Result<Value, GraphError> + Send>;

/// A message as it came.
pub(crate) struct Parcel {
    size: usize,
    at: Instant,
    pub(crate) unread: Unread,
}

impl Parcel {
    fn read(self) -> Result<Message, GraphError> {
        let age = self.at.elapsed();
        (self.unread)().map(|value| Message { value, age })
    }
}

#[derive(Default)]
struct Contents {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    dropped: u64,
    received: u64,
    end: Option<GraphError>,
}

/// The messages of one subscription.
pub struct Inbox {
    contents: Mutex<Contents>,
    arrival: Notify,
    bounds: Bounds,
}

/// A message that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// What it says.
    pub value: Value,
    /// How long ago it arrived here.
    pub age: Duration,
}

impl Inbox {
    /// An empty one.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            contents: Mutex::default(),
            arrival: Notify::new(),
            bounds,
        }
    }

    /// Adds a message that comes now; what is too much goes, the oldest first.
    pub fn put(&self, size: usize, unread: Unread) {
        self.put_received(size, Instant::now(), unread);
    }

    /// Adds a message that was received before now.
    pub(crate) fn put_received(&self, size: usize, at: Instant, unread: Unread) {
        let mut contents = self.contents.lock();
        contents.bytes += size;
        contents.received += 1;
        contents.parcels.push_back(Parcel { size, at, unread });
        while contents.parcels.len() > self.bounds.messages.max(1)
            || (contents.parcels.len() > 1 && contents.bytes > self.bounds.bytes)
        {
            if let Some(old) = contents.parcels.pop_front() {
                contents.bytes -= old.size;
                contents.dropped += 1;
            }
        }
        drop(contents);
        self.arrival.notify_one();
    }

    /// Nothing comes any more, for this reason.
    pub(crate) fn end(&self, reason: GraphError) {
        self.contents.lock().end.get_or_insert(reason);
        self.arrival.notify_one();
    }

    /// How many messages went because there were too many.
    pub(crate) fn dropped(&self) -> u64 {
        self.contents.lock().dropped
    }

    /// How many messages came.
    pub(crate) fn received(&self) -> u64 {
        self.contents.lock().received
    }

    fn take(&self, newest: bool) -> Option<Result<Parcel, GraphError>> {
        let mut contents = self.contents.lock();
        if newest {
            while contents.parcels.len() > 1 {
                if let Some(old) = contents.parcels.pop_front() {
                    contents.bytes -= old.size;
                }
            }
        }
        let Some(parcel) = contents.parcels.pop_front() else {
            return contents.end.clone().map(Err);
        };
        contents.bytes -= parcel.size;
        Some(Ok(parcel))
    }

    /// The next message, or `None` after `patience`; the newest of those that wait where `newest` is set.
    pub(crate) async fn next(&self, newest: bool, patience: Duration) -> Option<Result<Message, GraphError>> {
        let parcel = self.parcel(newest, patience).await?;
        Some(parcel.and_then(Parcel::read))
    }

    /// The same, unread.
    pub(crate) async fn parcel(
        &self,
        newest: bool,
        patience: Duration,
    ) -> Option<Result<Parcel, GraphError>> {
        let wait = async {
            loop {
                let arrival = self.arrival.notified();
                if let Some(taken) = self.take(newest) {
                    return taken;
                }
                arrival.await;
            }
        };
        tokio::time::timeout(patience, wait).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Bounds, Inbox, Parcel};
    use crate::error::GraphError;
    use std::time::Duration;

    fn taken(inbox: &Inbox, newest: bool) -> Vec<serde_json::Value> {
        std::iter::from_fn(|| {
            let taken = inbox.take(newest)?.and_then(Parcel::read);
            taken.ok().map(|message| message.value)
        })
        .collect()
    }

    #[test]
    fn the_newest_messages_stay_within_both_bounds() {
        for (messages, bytes, size, left) in [
            (3, 1000, 10, vec![7, 8, 9]),
            (100, 25, 10, vec![8, 9]),
            (100, 5, 10, vec![9]),
            (0, 0, 10, vec![9]),
        ] {
            let inbox = Inbox::new(Bounds { messages, bytes });
            for number in 0..10 {
                inbox.put(size, Box::new(move || Ok(json!(number))));
            }
            assert_eq!((inbox.received(), inbox.dropped()), (10, 10 - left.len() as u64));
            assert_eq!(json!(taken(&inbox, false)), json!(left));
            assert_eq!(inbox.contents.lock().bytes, 0);
        }
    }

    #[test]
    fn only_the_newest_is_read_where_it_is_asked_for() {
        let inbox = Inbox::new(Bounds::default());
        inbox.put(1, Box::new(|| unreachable!("an old message is not read")));
        inbox.put(1, Box::new(|| Ok(json!(2))));
        assert_eq!(taken(&inbox, true), [json!(2)]);
    }

    #[tokio::test]
    async fn an_end_comes_after_what_was_there() {
        let inbox = Inbox::new(Bounds::default());
        inbox.put(1, Box::new(|| Ok(json!(1))));
        inbox.end(GraphError::Closed);
        let patience = Duration::from_secs(5);
        assert!(inbox.next(false, patience).await.unwrap().is_ok());
        assert_eq!(
            inbox.next(false, patience).await.unwrap().unwrap_err(),
            GraphError::Closed
        );
        let empty = Inbox::new(Bounds::default());
        assert!(empty.next(false, Duration::from_millis(1)).await.is_none());
    }
}
