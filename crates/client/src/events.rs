//! What happens on the bus beside answers.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::payload::EventMessage;

/// How many news may wait for a follower.
pub(crate) const EVENTS: usize = 1024;

/// Something that a follower of events may want to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum News {
    /// A toolbox reports something.
    Event(EventMessage),
    /// A reload ended, of this client or another one: ask for the list again.
    Reloaded,
    /// The bus is there again. What was known may be out of date: ask for the list again.
    Connected,
    /// The bus is away; the client connects again by itself.
    Disconnected {
        /// Why, as far as known.
        reason: String,
    },
    /// The follower was too slow for this many news, which are lost.
    Missed(u64),
}

/// News from the moment of the subscription on.
#[derive(Debug)]
pub struct Events(pub(crate) broadcast::Receiver<News>);

impl Events {
    /// Waits for the next news; `None` when the client is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<News> {
        match self.0.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(missed)) => Some(News::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
